// The group-size law: the chance Φ(κ√N) that N agents with empty memories end at the strong convention.

import { leadingEigenvalues } from "./eigenvalues.js";
import { fixedPoints } from "./fixed_points.js";
import { leastAction } from "./least_action.js";
import { pathEquations } from "./path_equations.js";
import { makePopulation } from "./population.js";
import { solution, startComposition } from "./solution.js";

const FLOOR = 1e-14; // answers of smaller probability are those that rounding makes
const SURE = 2.3263478740408408; // Φ⁻¹(99 %)
const NEAR = 1e-2; // Σ|x - y| within which a solution ends at a fixed point
const MAX_TIME = 2000;

/**
 * {kappa, critical, strong, reason} of agents with the probabilities q and no committed ones: κ, the size of groups that
 * end at the strong word with a chance of 99 %, that word (null if it is mixed), and why there is no κ, '' if there is.
 */
export function groupSizeLaw(q, space) {
  const population = makePopulation(space, q);
  const points = fixedPoints(population);
  const none = (reason) => ({ kappa: NaN, critical: NaN, strong: null, reason });
  if (points.map((point) => point.status).join() !== "stable,unstable,stable") return none(objection(points));
  const said = everSaid(q, space);
  if (said.length === 1) return { kappa: Infinity, critical: 0, strong: said[0], reason: "" };
  const reached = reachedFromEmpty(population, points);
  if (reached === null) return none("nowhere");
  const kappa = kappaOf(q, space, points, reached);
  if (typeof kappa === "string") return none(kappa);
  return { kappa, critical: (SURE / kappa) ** 2, strong: points[reached].convention, reason: "" };
}

/** Why a landscape has no law: it does not consist of two attractors with one saddle between them. */
function objection(points) {
  if (points.some((point) => point.status === "marginal")) return "marginal";
  const attractors = points.filter((point) => point.status === "stable").length;
  return attractors === 1 ? "one attractor" : attractors === 0 ? "no attractor" : "many attractors";
}

/** The words that a population of agents with empty memories may ever come to say. */
function everSaid(q, space) {
  const { memory } = pathEquations(q, space);
  const reached = new Uint8Array(space.nStates);
  reached[0] = 1;
  for (;;) {
    const said = [0, 1].filter((word) => reached.some((here, i) => here && q[2 * i + word] > FLOOR));
    const before = reached.reduce((sum, here) => sum + here, 0);
    reached.slice().forEach((here, i) => {
      for (const own of here ? said : []) {
        if (q[2 * i + own] > FLOOR) for (const partner of said) reached[1 + 4 * memory[i] + 2 * own + partner] = 1;
      }
    });
    if (reached.reduce((sum, here) => sum + here, 0) === before) return said;
  }
}

/** The number of the attractor that the rate equation reaches from empty memories, or null. */
function reachedFromEmpty(population, points) {
  const { space, q } = population;
  const end = solution(population, startComposition(space, null), [0], { until: MAX_TIME });
  const away = points.map(({ composition }) => composition.map((value, i) => end.composition[i] - value));
  const distances = away.map((one) => one.reduce((sum, value) => sum + Math.abs(value), 0));
  const nearest = distances.indexOf(Math.min(...distances));
  if (points[nearest].status !== "stable" || distances[nearest] > NEAR) return null;
  // A slow attractor is not reached in this time, but it has to be approached.
  const slope = pathEquations(q, space).drift(end.composition);
  const approached = slope.reduce((sum, value, i) => sum + value * away[nearest][i], 0) < 0;
  return end.atRest || approached ? nearest : null;
}

function kappaOf(q, space, points, strong) {
  const equations = pathEquations(q, space);
  const saddle = points[1].composition;
  const shifted = (w) => equations.transposed(saddle, w).map((value, i) => value + w[i]);
  const { values, vector } = leadingEigenvalues(shifted, space.nStates, 2);
  if (values[1][0] - 1 > 1e-7) return "two directions";
  const weak = points[2 - strong].composition;
  const towards = vector.reduce((sum, value, i) => sum + value * (weak[i] - saddle[i]), 0);
  const left = vector.map((value) => value * Math.sign(towards));
  const kappa = leastAction(equations, saddle, left, values[0][0] - 1);
  return kappa === null ? "long path" : Number.isNaN(kappa) ? "no path" : kappa;
}
