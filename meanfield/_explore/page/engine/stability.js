// Linear stability of stationary compositions, by the leading eigenvalue of the reduced Jacobian.

import { leadingEigenvalues } from "./eigenvalues.js";
import { flowSuccessors, saidNext } from "./flows.js";

// A policy that float64 rounds to a floor of 2e-16 has a zero eigenvalue displaced by the root of that floor.
const MARGINAL = 1e-7;

/**
 * 'stable', 'unstable' or 'marginal', and the real part of the leading eigenvalue, per unit of time, of a composition x
 * of full memories at which all agents say Q. The eigenvalue is known to a thousandth: enough to tell its sign.
 */
export function stabilityOf(population, x, Q) {
  const { values } = leadingEigenvalues(flowJacobian(population, x, Q), population.space.nFlows, 1, tells);
  const eigenvalue = values[0][0] - 1;
  const status = Math.abs(eigenvalue) <= MARGINAL ? "marginal" : eigenvalue < 0 ? "stable" : "unstable";
  return { status, eigenvalue };
}

/** Whether an eigenvalue is known well enough to tell on which side of 1 it is. */
function tells([now], [before]) {
  return Math.abs(now - before) < Math.max(1e-10, 1e-3 * Math.abs(now - 1));
}

/**
 * The Jacobian plus the identity, on the weights of flows (see flows.js): agents move on as they hear Q, and a change
 * of what is said changes what all of them hear. Directions that change the number of agents are projected out.
 */
function flowJacobian({ q, space, share }, x, Q) {
  const said = saidNext(q, space);
  const successors = flowSuccessors(space);
  const law = spokenFrom(x, q, space);
  const answers = [new Float64Array(space.nFlows), new Float64Array(space.nFlows)];
  for (let i = 0; i < said.length; i++) answers[(i >> 1) & 1][successors[i]] += law[i >> 2] * said[i];
  return (u) => {
    const image = new Float64Array(space.nFlows);
    const change = [0, 0];
    for (let flow = 0; flow < u.length; flow++) change[flow & 1] += share * u[flow];
    let total = 0;
    for (let i = 0; i < said.length; i++) image[successors[i]] += u[i >> 2] * Q[(i >> 1) & 1] * said[i];
    for (let flow = 0; flow < u.length; flow++) {
      image[flow] += change[0] * answers[0][flow] + change[1] * answers[1][flow];
      total += image[flow];
    }
    return image.map((value, flow) => value - total * law[flow]);
  };
}

/** Weights of agents with full memories by flow: what they keep and the word they say. */
function spokenFrom(x, q, space) {
  const kept = space.nFlows / 2;
  const law = new Float64Array(space.nFlows);
  for (let i = 0; i < 4 * kept; i++) {
    const state = space.nKept + i;
    for (let a = 0; a < 2; a++) law[2 * (i % kept) + a] += x[state] * q[2 * state + a];
  }
  return law;
}
