// The response F(Q): what a population says whose agents have long heard the word share Q.

import { closedClasses } from "./flows.js";
import { flowLaw, saidBy, stationaryLaw } from "./stationary.js";

/** (Q_0, Q_1) at logit Q, each to full relative accuracy. */
export function wordShares(logit) {
  return [1 / (1 + Math.exp(-logit)), 1 / (1 + Math.exp(logit))];
}

/** The responses of a population, one for each closed class of memories. */
export function responses(population) {
  const { q, space } = population;
  return closedClasses(q, space, [0, 1]).map((flows) => responseOn(stationaryLaw(q, space, flows), population));
}

function responseOn(chain, { share, committed }) {
  const uncommitted = (Q, tolerance) => saidBy(flowLaw(chain, Q, tolerance));
  return {
    /** What the agents say who are not committed. */
    uncommitted,
    /** F(Q), what all say. */
    said(Q, tolerance) {
      const free = uncommitted(Q, tolerance);
      return [share * free[0] + committed[0], share * free[1] + committed[1]];
    },
    /** The stationary law p(Q) over all states. */
    composition: (Q) => compositionOf(chain, Q),
  };
}

/** The stationary law over all states of agents on one closed class. */
export function compositionOf(chain, Q) {
  const law = flowLaw(chain, Q);
  const x = new Float64Array(chain.space.nStates);
  law.forEach((weight, flow) => {
    x[chain.space.nKept + 2 * flow] = weight * Q[0];
    x[chain.space.nKept + 2 * flow + 1] = weight * Q[1];
  });
  return x;
}
