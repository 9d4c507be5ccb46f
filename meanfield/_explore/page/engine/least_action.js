// The likeliest path over the saddle among many agents, however unlikely: the path of least action.
//
// Noise carries N agents along a path with a chance of exp(-N κ²/2) to leading order in N. Here κ²/2 = ∫ p·dx/dt - h dt,
// from Hamilton's equations of the interactions themselves. Newton's method may not find the path for agents who hardly
// ever slip. It then starts from agents who with a chance ε answer as at the saddle, and follows the path as ε falls.

import { saidIn } from "./drift.js";
import { meshUntil, MessageProblem, movedMessages, ROUGH, SHORT_SEARCH } from "./messages.js";
import { dotProduct } from "./path_equations.js";

const [WEAK, STRONG] = [{ firstTime: 1, ends: [16] }, { firstTime: 1e-8, ends: [32, 16, 8] }]; // meshes, and their ends
const LARGE = 0.5; // κ from which noise is strong and acts earlier
const [SMALL, SMALLEST] = [0.01, 1e-6]; // κ whose sign a coarse mesh may not tell; which rounding leaves
const [LEAST_LONGER, MOST_LONGER] = [1.2, 1.5]; // the next end of time
const SLOWEST = 5e-4; // saddle, by its eigenvalue: others are as good as marginal
const FADED = 16; // end of time, in units of the time in which a momentum fades
const FINEST = 64; // parts of a step
const [END, SETTLED] = [5e-4, 1e-4]; // relative error of the momentum from its end; what half the step may change of κ
const [MESSAGE_TOLERANCE, ON_THE_WAY] = [1e-5, 1e-4]; // of logarithms of messages, and before the last end of time
const WAITS = [0.2, 0.4, 0.6, 0.8, 1]; // where paths may become longer, of their time
const NEARLY = 5e-2; // error of the momentum where no longer path is found, as where it waits near an attractor
const LONG_SEARCH = 10 ** 6; // evaluations times nodes, from a path that is near
const STARTS = [1e-3, 1e-2, 0.1, 0.3]; // ε
const IMPOSSIBLE = 1e-14; // ε instead of 0: messages have logarithms
const NEGLIGIBLE = 0.03; // ε, against the rarest answer
const [FIRST_RATIO, SMALLEST_RATIO, LARGEST_RATIO] = [10 ** 0.5, 1.1, 1e4]; // of ε to the next
const EASY = 150; // evaluations, below which the ratio grows
const MOST_NUMBERS = 2 ** 22; // nodes times states

/**
 * κ of the path of least action, known to about 1e-4: a number, NaN if none is found, or null if it takes too many times.
 * `left` is the left eigenvector of the saddle's unstable direction, positive towards the side that noise must reach,
 * and `growth` its eigenvalue.
 */
export function leastAction(equations, saddle, left, growth) {
  if (growth < SLOWEST) return null;
  const ends = endingAt(equations, saddle, left, growth);
  const { q, space } = equations;
  const rarest = q.reduce((least, chance) => Math.min(least, chance), 1);
  const least = rarest > 0 ? 0 : IMPOSSIBLE;
  for (const mesh of [WEAK, STRONG]) {
    for (const until of mesh.ends) {
      const problem = new MessageProblem(q, space, ends, meshUntil(until, 1, mesh.firstTime));
      const found = mesh === WEAK ? weakPath(problem, least) : followed(problem, least, rarest);
      const kappa = found && found.kappa > -SMALL ? settled(equations, problem, found, until, least, mesh) : NaN;
      if (kappa === null || !Number.isNaN(kappa)) return kappa;
      if (mesh === STRONG && found && found.kappa > -SMALL) return NaN;
    }
  }
  return NaN;
}

function endingAt(equations, saddle, left, growth) {
  const level = dotProduct(left, saddle);
  const raised = left.map((value) => value - level);
  const size = raised.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const scaled = raised.map((value) => value / size);
  const spread = dotProduct(scaled, equations.noise(saddle, scaled));
  return { left: scaled, growth, spread, said: saidIn(equations.q, saddle) };
}

/** The path if noise is weak, or null. */
function weakPath(problem, least) {
  const found = problem.solve(problem.steady(), least, MESSAGE_TOLERANCE);
  if (!found || Math.abs(found.kappa) > LARGE) return null;
  return problem.solve(found.logarithms, least, ON_THE_WAY * sizeOf(found));
}

/** That of the momentum, for tolerances. */
function sizeOf(found) {
  return Math.min(Math.max(Math.abs(found.kappa), SMALLEST), 1);
}

/** The relative error of the momentum from linearising the end: its share after the last time, times the nonlinearity. */
function endError(equations, { left, growth, spread }, { kappa, last, strength }) {
  const off = equations.transposed(last, left).map((value, i) => value - growth * left[i]);
  const rest = Math.abs(strength) * Math.sqrt(spread / (2 * growth));
  return kappa === 0 ? Infinity : (rest / Math.abs(kappa)) * (rangeOf(off) / (growth * rangeOf(left)));
}

function rangeOf(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return high - low;
}

/** κ with as many and as long times as it needs. */
function settled(equations, first, start, approach, least, { firstTime }) {
  const weak = firstTime === WEAK.firstTime;
  let [problem, found, until, parts] = [first, start, approach, 1];
  let [change, longest, error] = [Infinity, false, endError(equations, first.ends, start)];
  for (;;) {
    const short = !longest && error > END;
    if (!short && !(change > SETTLED)) return found.kappa > 0 ? found.kappa : NaN;
    const lengthen = short && !(weak && change > SETTLED);
    const { growth, said } = problem.ends;
    const longer = 1 + Math.log(error / END) / (2 * growth * until);
    const end = lengthen ? until * Math.min(Math.max(longer, LEAST_LONGER), MOST_LONGER) : until;
    const fine = lengthen ? parts : 2 * parts;
    const mesh = meshUntil(end, fine, firstTime);
    if (end * growth > FADED || fine > FINEST) return NaN;
    if (mesh.nNodes * problem.space.nStates > MOST_NUMBERS) return null;
    const another = new MessageProblem(problem.q, problem.space, problem.ends, mesh);
    const tolerance = (fine === 1 ? ON_THE_WAY : MESSAGE_TOLERANCE) * sizeOf(found);
    const waits = lengthen && !weak ? WAITS : WAITS.slice(-1);
    const fading = (value, i) => {
      const atSaddle = Math.log(said[(i >> 1) & 1]);
      return atSaddle + Math.exp(-growth * Math.max(mesh.time[2 * (i >> 2)] - until, 0)) * (value - atSaddle);
    };
    const starts = waits
      .map((wait) => movedMessages(found.logarithms, problem.mesh, mesh, wait))
      .map((start) => (weak ? start.map(fading) : start));
    const enough = lengthen && error < NEARLY;
    const most = enough ? SHORT_SEARCH : Math.floor(LONG_SEARCH / mesh.nNodes);
    const better = another.solve(another.nearest(starts, least), least, tolerance, most);
    if (!better && enough) {
      longest = true;
      continue;
    }
    if (!better || !(better.kappa > -SMALL)) return NaN;
    const size = Math.max(Math.abs(found.kappa), Math.abs(better.kappa));
    if (!lengthen) change = Math.abs(better.kappa - found.kappa) / size;
    [found, problem, until, parts, error] = [better, another, end, fine, endError(equations, another.ends, better)];
  }
}

/** The path for the least chance of random answers, if necessary by following it from larger ones. */
function followed(problem, least, rarest) {
  const start = problem.steady();
  let found = problem.solve(start, least, MESSAGE_TOLERANCE);
  if (found) return found;
  let atRandom;
  for (atRandom of STARTS) {
    found = problem.solve(start, atRandom, ROUGH);
    if (found) break;
  }
  if (!found) return null;
  const smallest = least === 0 ? NEGLIGIBLE * rarest : IMPOSSIBLE;
  let [slope, ratio] = [found.logarithms.map(() => 0), FIRST_RATIO];
  for (;;) {
    const last = atRandom / ratio <= smallest;
    const following = last ? smallest : atRandom / ratio;
    const move = Math.log(following / atRandom);
    problem.evaluations = 0;
    const guess = found.logarithms.map((value, i) => value + move * slope[i]);
    const tried = problem.solve(guess, last ? least : following, last ? MESSAGE_TOLERANCE : ROUGH);
    if (!tried) {
      ratio = Math.sqrt(ratio);
      if (ratio < SMALLEST_RATIO) return null;
      continue;
    }
    if (last) return tried;
    const from = found.logarithms;
    slope = tried.logarithms.map((value, i) => (value - from[i]) / move);
    [found, atRandom] = [tried, following];
    if (problem.evaluations < EASY) ratio = Math.min(ratio ** 1.5, LARGEST_RATIO);
  }
}
