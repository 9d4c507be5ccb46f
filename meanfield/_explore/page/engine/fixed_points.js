// Fixed points of the rate equation, as roots of Q = F(Q).

import { consensusState } from "./memory.js";
import { responses, wordShares } from "./response.js";
import { allRoots } from "./roots.js";
import { stabilityOf } from "./stability.js";

// Policies have floors of 2e-16 ≈ Q at logit -36; at ±46 a word share is 1e-20.
export const LOGITS = [-46, -23, -12, -6, -3, 0, 3, 6, 12, 23, 46];
const MAX_LOGIT = 600; // a share of 1e-261: products of smaller ones lose their digits
const LEAST_SLIP = Math.exp(-MAX_LOGIT);
const FIRST_LOOK = 1e-6; // accuracy of g, which is enough where no two roots are about to merge
const ROUNDING = 1e-14; // of g, five times what is seen
const CONSENSUS_SUCCESS_RATE = 0.98;

/**
 * All fixed points by falling share of word 0: {Q, composition, convention, status}. The convention is the
 * word on which the uncommitted agents agree, or null if they are mixed. An error where rounding hides every one.
 */
export function fixedPoints(population) {
  const { points } = restingStates(population);
  if (!points.length) throw new Error("there is a resting point, but rounding hides at which share");
  return points;
}

/** The fixed points, none where rounding hides all, and stretches [low, high] of shares of word 0 that are all fixed points up to rounding. */
export function restingStates(population) {
  const points = exactCorners(population);
  const stretches = [];
  responses(population).forEach((response, branch) => {
    const { roots, flat } = interiorRoots(response);
    for (const { x, slope } of roots) {
      const Q = wordShares(x);
      points.push({ Q, branch, composition: response.composition(Q), mayBeStable: slope < 0 });
    }
    stretches.push(...flat.map((stretch) => stretch.map((logit) => wordShares(logit)[0])));
  });
  points.sort((a, b) => b.Q[0] - a.Q[0]);
  const described = points.map(({ Q, branch, composition, mayBeStable = true }) => {
    const status = stabilityOf(population, composition, Q);
    const sure = mayBeStable || status !== "stable" ? status : "marginal";
    return { Q, branch, composition, convention: conventionOf(population, Q), status: sure };
  });
  return { points: described, stretches };
}

/** The roots ℓ = logit Q of g(ℓ) = log(F_0/F_1) - ℓ with 0 < Q < 1, and the stretches where g is zero up to rounding. */
function interiorRoots(response) {
  const g = (logit, tolerance) => {
    const Q = wordShares(logit);
    const said = response.said(Q, tolerance);
    return Math.log(said[0] / Q[0]) - Math.log(said[1] / Q[1]);
  };
  const exact = (logit) => g(logit, ROUNDING);
  if (response.said(wordShares(0)).some((share) => share === 0)) return { roots: [], flat: [] };
  const right = outerBreaks((logit) => g(logit));
  const left = outerBreaks((logit) => -g(-logit));
  const breaks = [...left.map((logit) => -logit).reverse(), ...LOGITS.slice(1, -1), ...right];
  return allRoots((logit) => g(logit, FIRST_LOOK / 100), breaks, FIRST_LOOK, exact, ROUNDING);
}

/** Breaks from 46 upwards, until g only moves away from zero or stays: there log(F_0/F_1) is n·ℓ + constant. */
function outerBreaks(g) {
  let end = LOGITS.at(-1);
  const breaks = [end];
  while (end < MAX_LOGIT) {
    const last = g(end);
    const slope = last - g(end - 1);
    const whole = Math.round(slope);
    if (!Number.isFinite(slope)) throw new Error(`a word's share cannot be told at logit Q = ${end}`);
    const away = slope * last >= 0 && (Math.abs(last) > 1e-6 || whole === 0); // else there is a root at the very end
    if (Math.abs(slope - whole) < 1e-4 && away && lasts(g, end, last, whole)) break;
    end = Math.min(1.5 * end, MAX_LOGIT);
    breaks.push(end);
  }
  return breaks;
}

/** Whether g goes on in this way where a share is hardly a number; a floor may follow far out. */
function lasts(g, end, last, slope) {
  const far = g(MAX_LOGIT);
  return !Number.isFinite(far) || Math.abs(far - last - slope * (MAX_LOGIT - end)) < 1;
}

/** Consensus states in which nobody ever says the other word. */
export function exactCorners({ q, space, committed }) {
  return [0, 1].flatMap((word) => {
    const state = consensusState(space, word);
    const slips = q[2 * state + 1 - word] > LEAST_SLIP;
    if (slips || committed[1 - word] > 0) return [];
    const composition = new Float64Array(space.nStates);
    composition[state] = 1;
    return [{ Q: word === 0 ? [1, 0] : [0, 1], branch: -1, composition }];
  });
}

/** The word on which the uncommitted agents agree if all together say Q, or null. */
export function conventionOf({ committed, share }, Q) {
  const free = Q.map((one, word) => (one - committed[word]) / share);
  if (free[0] ** 2 + free[1] ** 2 < CONSENSUS_SUCCESS_RATE) return null;
  return free[0] > free[1] ? 0 : 1;
}

/**
 * F(Q) - Q for word 0 at each share of word 0, where agents who have long heard Q would move it; a list for each closed
 * class of memories.
 */
export function driftOnLine(population, shares) {
  const inside = shares.map((share) => Math.min(Math.max(share, 1e-9), 1 - 1e-9));
  return responses(population).map((response) => inside.map((Q) => response.said([Q, 1 - Q])[0] - Q));
}
