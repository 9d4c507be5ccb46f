// The likeliest path over the saddle among many agents, however unlikely: the path of least action.
//
// Noise carries N agents along a path with a chance of exp(-N κ²/2) to leading order in N. Here κ²/2 = ∫ p·dx/dt - h dt,
// from Hamilton's equations of the interactions themselves. Newton's method may not find the path for agents who hardly
// ever slip. It then starts from agents who with a chance ε answer as at the saddle, and follows the path as ε falls.

import { saidIn } from "./drift.js";
import { meshUntil, MessageProblem, movedMessages, ROUGH } from "./messages.js";
import { dotProduct } from "./path_equations.js";

const [APPROACHES, LONGER] = [[32, 16, 8], 1.5]; // first end of time; the next one
const SLOWEST = 5e-4; // saddle, by its eigenvalue: others are as good as marginal
const FADED = 16; // end of time, in units of the time in which a momentum fades
const FINEST = 64; // parts of a step
const SETTLED = 1e-4; // error of κ, relative, and what half the step may change
const MESSAGE_TOLERANCE = 1e-5; // of logarithms of messages
const WAITS = [0.2, 0.4, 0.6, 0.8, 1]; // where paths may become longer, of their time
const NEARLY = 1e-2; // error where no longer path is found, as where it waits near an attractor
const LONG_SEARCH = 10 ** 6; // evaluations times nodes, from a path that is near
const STARTS = [1e-3, 1e-2, 0.1, 0.3]; // ε
const IMPOSSIBLE = 1e-14; // ε instead of 0: messages have logarithms
const NEGLIGIBLE = 0.03; // ε, against the rarest answer
const [FIRST_RATIO, SMALLEST_RATIO, LARGEST_RATIO] = [10 ** 0.5, 1.1, 1e4]; // of ε to the next
const EASY = 150; // evaluations, below which the ratio grows
const MOST_NUMBERS = 2 ** 22; // nodes times states

/** κ of the path of least action, or NaN if none is found; known to about 1e-4. Arguments as for `leastNoise`. */
export function leastAction(equations, saddle, left, growth) {
  if (growth < SLOWEST) return NaN;
  const ends = endingAt(equations, saddle, left, growth);
  const { q, space } = equations;
  const rarest = q.reduce((least, chance) => Math.min(least, chance), 1);
  const least = rarest > 0 ? 0 : IMPOSSIBLE;
  for (const until of APPROACHES) {
    const problem = new MessageProblem(q, space, ends, meshUntil(until, 1));
    const found = followed(problem, least, rarest);
    if (found && found.kappa > 0) return settled(problem, found, until, least);
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

/** κ with as many and as long times as it needs. */
function settled(first, start, approach, least) {
  let [problem, found, until, parts] = [first, start, approach, 1];
  let [change, longest] = [Infinity, false];
  for (;;) {
    const lengthen = !longest && found.endError > SETTLED;
    if (!lengthen && !(change > SETTLED)) return found.kappa;
    const [end, fine] = lengthen ? [until * LONGER, parts] : [until, 2 * parts];
    const mesh = meshUntil(end, fine);
    if (end * problem.ends.growth > FADED || fine > FINEST) return NaN;
    if (mesh.nNodes * problem.space.nStates > MOST_NUMBERS) return NaN;
    const another = new MessageProblem(problem.q, problem.space, problem.ends, mesh);
    const tolerance = MESSAGE_TOLERANCE * Math.min(Math.max(found.kappa ** 2, 1e-3), 1);
    const waits = lengthen ? WAITS : WAITS.slice(-1);
    const starts = waits.map((wait) => movedMessages(found.logarithms, problem.mesh, mesh, wait));
    const most = Math.floor(LONG_SEARCH / mesh.nNodes);
    const better = another.solve(another.nearest(starts, least), least, tolerance, most);
    if (!better && lengthen && found.endError < NEARLY) {
      longest = true;
      continue;
    }
    if (!better || !(better.kappa > 0)) return NaN;
    if (!lengthen) change = Math.abs(better.kappa / found.kappa - 1);
    [found, problem, until, parts] = [better, another, end, fine];
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
