// Equilibria as a committed minority grows, and the critical mass at which the other convention vanishes.
//
// At an equilibrium F(Q; c) = F(Q; 0) + c·B(Q) = Q, hence c(Q) = (Q - F(Q; 0)) / B(Q): one curve for all equilibria, whose
// folds are the extrema of c.

import { bisected, derivative, interpolate, realRoots } from "./chebyshev.js";
import { exactCorners, fixedPoints, LOGITS } from "./fixed_points.js";
import { withCommitted } from "./policy.js";
import { responses, wordShares } from "./response.js";
import { stabilityOf } from "./stability.js";

const TOLERANCE = 1e-10;
const SAME_STOP = 1e-9; // of logit Q
const ALIKE = 1e-12;
const SMALLEST_FOLD = 1e-8; // between two folds c changes by more than its interpolant may err
const EDGE = 45.9; // |logit Q| beyond which an equilibrium is taken for the consensus at which the curve ends
const NOTHING = 1e-9;
const SAME_SHARE = 1e-6;
const SAMPLES = 80; // points of a stretch
const NOWHERE = { mass: NaN, transition: "none", turn: NaN };
const SEEN = 9; // |logit Q| beyond which shares cannot be told from 0 and 1 in a picture

/** The population without agents committed to `word`, and its equilibria as their fraction grows. */
export function equilibriaTowards(population, word) {
  const rest = withCommitted(population, word, 0);
  const found = responses(rest);
  return { rest, word, found, curves: found.map((response) => equilibriumCurve(rest, response, word)) };
}

/**
 * The critical mass of the word: {mass, transition, turn, said}, with the mass NaN if the old state never vanishes. `turn`
 * then is the fraction from which most others say another word than at first, `said`; NaN if there is none. The old
 * state is the fixed point that is not unstable without agents committed to the word at which the word is rarest.
 */
export function criticalMass({ rest, word, curves }) {
  const old = fixedPoints(rest)
    .filter((point) => point.status !== "unstable")
    .reduce((found, point) => (!found || point.Q[word] < found.Q[word] ? point : found), null);
  return old ? followed(old.branch < 0 ? curves : [curves[old.branch]], old) : NOWHERE;
}

/** The fate of the old state with rising c. */
function followed(curves, old) {
  const away = (stop) => Math.abs(wordShares(stop.logit)[0] - old.Q[0]);
  let [curve, path] = [null, null];
  for (const one of curves) {
    for (const arc of one.arcs.flatMap((stops) => [stops, stops.slice().reverse()])) {
      if (arc[0].c <= NOTHING && (!path || away(arc[0]) < away(path[0]))) [curve, path] = [one, arc];
    }
  }
  if (!path || away(path[0]) > SAME_SHARE) return NOWHERE;
  const end = path[1];
  if (end.fold) return { ...NOWHERE, mass: end.c, transition: "fold" };
  const inwards = end.logit - 2 * Math.sign(end.logit);
  const merges = end.c < curve.end * (1 - SAME_SHARE) && Math.abs(end.logit) > EDGE;
  if (merges && Math.abs(end.c - curve.c(inwards)) < NOTHING) return { ...NOWHERE, mass: end.c, transition: "continuous" };
  return { ...NOWHERE, ...turnOf(curve, path[0].logit, end.logit) };
}

/** The fraction between two logits of the curve from which most others no longer say what most of them said at first. */
function turnOf(curve, from, to) {
  const first = curve.others(from);
  const old = first[0] >= first[1] ? 0 : 1;
  const logits = Array.from({ length: SAMPLES }, (_, k) => from + ((to - from) * (k + 1)) / SAMPLES);
  const after = logits.findIndex((logit) => curve.others(logit)[old] < 0.5);
  if (after < 0) return {};
  const turn = bisected((logit) => curve.others(logit)[old] - 0.5, logits[after - 1] ?? from, logits[after]);
  return { turn: curve.c(turn), said: 1 - old };
}

/**
 * The stretches of the diagram between folds: {stable, c, share} with the committed fraction and the share of word 0
 * along each. An exact consensus on the word itself is a stretch of its own.
 */
export function equilibriumDiagram({ rest, word, found, curves }) {
  const stretches = curves.flatMap((curve, branch) =>
    curve.arcs.flatMap((arc) =>
      arc.slice(1).map((stop, i) => stretchOf(rest, found[branch], word, curve, arc[i], stop)),
    ),
  );
  const halfway = withCommitted(rest, word, (1 - rest.committed[1 - word]) / 2);
  for (const corner of exactCorners(halfway)) {
    const status = stabilityOf(halfway, corner.composition, corner.Q);
    const share = [corner.Q[0], corner.Q[0]];
    stretches.push({ stable: status === "stable", c: [0, 1 - rest.committed[1 - word]], share });
  }
  return stretches;
}

function stretchOf(rest, response, word, curve, from, to) {
  const [low, high] = [from, to].map(({ logit }) => Math.min(Math.max(logit, -SEEN), SEEN));
  const inner = Array.from({ length: SAMPLES }, (_, k) => low + ((high - low) * (k + 0.5)) / SAMPLES);
  const logits = [from.logit, ...inner, to.logit];
  const c = [from.c, ...inner.map(curve.c), to.c]; // at the ends 0 or the largest, where rounding would miss them
  const share = logits.map((logit) => wordShares(logit)[0]);
  return { stable: stableInside(rest, response, word, logits, c), c, share };
}

/** Whether a stretch is stable, judged where c is half way between its ends. */
function stableInside(rest, response, word, logits, c) {
  const middle = (c[0] + c.at(-1)) / 2;
  const nearest = c.reduce((best, value, k) => (Math.abs(value - middle) < Math.abs(c[best] - middle) ? k : best), 0);
  const Q = wordShares(logits[nearest]);
  return stabilityOf(withCommitted(rest, word, c[nearest]), response.composition(Q), Q) === "stable";
}

/**
 * The curve of a population without agents committed to `word`, on one closed class of memories: c(logit Q), the largest
 * fraction, the arcs with 0 ≤ c ≤ end, each a list of stops {logit, c, fold}, and what the others say at a logit.
 */
function equilibriumCurve(rest, response, word) {
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
  // The angle arctan(c) is bounded, and smooth where c has a pole. Its extrema are those of c.
  const angle = (logit) => {
    const [top, bottom] = sides(logit);
    return Math.atan2(Math.sign(bottom) * top, Math.abs(bottom));
  };
  const stops = distinct(interpolate(angle, LOGITS, TOLERANCE).flatMap((piece) => stopsOf(piece, end)));
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

/** Where c on this piece turns, is 0 or the largest, and the ends of the piece. */
function stopsOf({ left, right, series }, end) {
  const reached = [0, Math.atan(end)].map((level) => [series[0] - level, ...series.slice(1)]);
  return [left, ...[derivative(series), ...reached].flatMap((one) => realRoots(one, left, right)), right];
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
