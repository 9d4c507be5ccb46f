// Which start leads where, if a share s of agents remembers only word 0 and all others only word 1.

import { conventionOf, restingStates } from "./fixed_points.js";
import { saidIn, solution, startComposition } from "./solution.js";
import { stabilityOf } from "./stability.js";

const SECTIONS = 16; // even, so that no start of a symmetric family lies on the separatrix in its middle
const REFINEMENT = 6; // starts within an interval that holds a separatrix
const TOLERANCE = 1e-7;
const SAME_ATTRACTOR = 1e-3; // Σ|x - y| / 2
const MAX_TIME = 2000;
const SADDLE = -1;
const MOVING = -2;

/**
 * {boundaries, marginal}: the shares s at which the attractor changes, in rising order, each known to 1e-7, and whether
 * some starts end at marginal points.
 */
export function separatrices(population) {
  const { points } = restingStates(population);
  const reached = (s) => ({ s, end: attractorFrom(population, points, s) });
  let starts = evenly(0, 1, SECTIONS).map(reached);
  for (;;) {
    const open = starts.findIndex(
      ({ s, end }, i) => i + 1 < starts.length && starts[i + 1].end !== end && starts[i + 1].s - s > TOLERANCE,
    );
    if (open < 0) break;
    const inner = evenly(starts[open].s, starts[open + 1].s, REFINEMENT + 2).slice(1, -1);
    starts = [...starts.slice(0, open + 1), ...inner.map(reached), ...starts.slice(open + 1)];
  }
  const kept = starts.filter(({ end }) => end !== SADDLE);
  const boundaries = kept.slice(1).flatMap(({ s, end }, i) => (end === kept[i].end ? [] : [(kept[i].s + s) / 2]));
  return { boundaries, marginal: kept.some(({ end }) => typeof end === "string") };
}

function evenly(from, to, number) {
  const step = (to - from) / (number - 1);
  return Array.from({ length: number }, (_, i) => (i === number - 1 ? to : i * step + from));
}

/**
 * The end of a start: the number of a fixed point, SADDLE for an unstable one, MOVING if it comes to no rest. Marginal
 * points may be a continuum, and count by their convention.
 */
function attractorFrom(population, points, s) {
  const { composition, atRest } = solution(population, startComposition(population.space, s), [0], { until: MAX_TIME });
  if (!atRest) return MOVING;
  const said = saidIn(population.q, composition);
  const Q = said.map((free, word) => population.share * free + population.committed[word]);
  const place = points.findIndex((point) => distance(point.composition, composition) < SAME_ATTRACTOR);
  const status = place < 0 ? stabilityOf(population, composition, Q) : points[place].status;
  if (status === "unstable") return SADDLE;
  return status === "marginal" ? `marginal ${conventionOf(population, Q)}` : place;
}

function distance(x, y) {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += Math.abs(x[i] - y[i]);
  return sum / 2;
}
