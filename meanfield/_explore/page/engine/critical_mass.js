// The committed fraction at which the other convention vanishes, and the diagram of all equilibria on the way.

import { equilibriumCurve } from "./equilibria.js";
import { exactCorners, fixedPoints } from "./fixed_points.js";
import { withCommitted } from "./population.js";
import { responses, wordShares } from "./response.js";
import { stabilityOf } from "./stability.js";

const EDGE = 45.9; // |logit Q| beyond which an equilibrium is taken for the consensus at which the curve ends
const NOTHING = 1e-9;
const SAME_SHARE = 1e-6;
const SAMPLES = 80; // points of a stretch
const BISECTIONS = 50;
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
  let [near, far] = [after === 0 ? from : logits[after - 1], logits[after]];
  for (let step = 0; step < BISECTIONS; step++) {
    const middle = (near + far) / 2;
    if (curve.others(middle)[old] < 0.5) far = middle;
    else near = middle;
  }
  return { turn: curve.c(far), said: 1 - old };
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
    const { status } = stabilityOf(halfway, corner.composition, corner.Q);
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
  return stabilityOf(withCommitted(rest, word, c[nearest]), response.composition(Q), Q).status === "stable";
}
