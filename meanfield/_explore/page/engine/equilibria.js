// Equilibria as a committed minority grows: its fraction c as an explicit function of the word share.
//
// At an equilibrium F(Q; c) = F(Q; 0) + c·B(Q) = Q, hence c(Q) = (Q - F(Q; 0)) / B(Q): one curve for all equilibria, whose
// folds are the extrema of c.

import { combination, derivative, interpolate, product, realRoots } from "./chebyshev.js";
import { LOGITS } from "./fixed_points.js";
import { wordShares } from "./response.js";

const TOLERANCE = 1e-10;
const SAME_STOP = 1e-9; // of logit Q
const ALIKE = 1e-12;
const SMALLEST_FOLD = 1e-8; // between two folds c changes by more than its interpolant may err

/**
 * The curve of a population without agents committed to `word`, on one closed class of memories: c(logit Q), the largest
 * fraction, the arcs with 0 ≤ c ≤ end, each a list of stops {logit, c, fold}, and what the others say at a logit.
 */
export function equilibriumCurve(rest, response, word) {
  const end = 1 - rest.committed[1 - word];
  const sides = (logit) => sidesAt(rest, response, word, logit);
  const c = (logit) => {
    const [top, bottom] = sides(logit);
    return top / bottom;
  };
  const others = (logit) => response.uncommitted(wordShares(logit));
  return { c, end, arcs: findArcs(sides, c, end).map(withoutRipples), others };
}

/** Q - F(Q; 0) and B(Q) of the rarer word, where both have full relative accuracy. */
function sidesAt(rest, response, word, logit) {
  const Q = wordShares(logit);
  const free = response.uncommitted(Q);
  const rarer = logit > 0 ? 1 : 0;
  const said = rest.share * free[rarer] + rest.committed[rarer];
  return [Q[rarer] - said, (rarer === word ? 1 : 0) - free[rarer]];
}

function findArcs(sides, c, end) {
  const matters = LOGITS.some((logit) => {
    const [top, bottom] = sides(logit);
    return Math.abs(bottom) > ALIKE * Math.hypot(top, bottom);
  });
  if (!matters) return []; // agents of this class say the word anyway
  // As a unit vector both sides are bounded, and smooth where c has a pole.
  const normalised = (logit) => {
    const [top, bottom] = sides(logit);
    const size = (logit > 0 ? -1 : 1) * Math.hypot(top, bottom); // the rarer word changes at 0
    return [top / size, bottom / size];
  };
  const pieces = interpolate(normalised, LOGITS, TOLERANCE);
  pieces.sort((a, b) => a.left - b.left);
  const stops = distinct(pieces.flatMap((piece) => stopsOf(piece, end)));
  const values = stops.map((logit) => Math.min(Math.max(c(logit), 0), end));
  const arcs = [];
  for (let i = 0; i + 1 < stops.length; i++) {
    const inside = c((stops[i] + stops[i + 1]) / 2);
    if (!(inside >= 0 && inside <= end)) continue;
    const last = arcs.at(-1);
    if (!last || last.at(-1).logit !== stops[i]) arcs.push([{ logit: stops[i], c: values[i], fold: false }]);
    arcs.at(-1).push({ logit: stops[i + 1], c: values[i + 1], fold: false });
  }
  return arcs;
}

/** Where c on this piece turns, is 0 or the largest, or has a pole; and the ends of the piece. */
function stopsOf({ left, right, series: [top, bottom] }, end) {
  const turning = combination(product(derivative(top), bottom), product(top, derivative(bottom)), -1);
  const special = [turning, top, combination(top, bottom, -end), bottom];
  return [left, ...special.flatMap((series) => realRoots(series, left, right)), right];
}

/** Stops in rising order, close ones merged, with a break of the grid preferred. */
function distinct(stops) {
  const apart = stops.filter((stop) => LOGITS.every((logit) => Math.abs(stop - logit) > SAME_STOP));
  apart.sort((a, b) => a - b);
  const rest = apart.filter((stop, i) => i === 0 || stop - apart[i - 1] > SAME_STOP);
  return [...LOGITS, ...rest].sort((a, b) => a - b);
}

/** The ends of an arc and its folds: extrema of c that differ by more than the error of the interpolant. */
function withoutRipples(arc) {
  let turns = arc;
  for (;;) {
    turns = turns.filter((stop, i) => {
      const [before, after] = [turns[i - 1], turns[i + 1]];
      return !before || !after || (stop.c - before.c) * (after.c - stop.c) < 0;
    });
    const steps = turns.slice(1).map((stop, i) => Math.abs(stop.c - turns[i].c));
    const smallest = steps.indexOf(Math.min(...steps));
    if (turns.length === 2 || steps[smallest] > SMALLEST_FOLD) {
      return turns.map((stop, i) => ({ ...stop, fold: i > 0 && i < turns.length - 1 }));
    }
    // Ends stay; of two extrema that hardly differ both go.
    const last = turns.length - 1;
    turns = turns.filter((_, i) => i === 0 || i === last || (i !== smallest && i !== smallest + 1));
  }
}
