// The path from empty memories to a saddle that takes the least noise of a finite population.
//
// With the momentum p,
//
//     dx/dt = F(x) + D(x)p,   dp/dt = -J(x)ᵀp,   x(0) = empty memories, x(∞) = the saddle,
//
// and κ² = ∫ pᵀD(x)p dt. A sweep goes backwards for p, and forwards for x with p·x held at the values that follow from p
// by a push along D(x)p, which vanishes as sweeps converge. Anderson's mixing finds the fixed point of sweeps, on a grid
// that is halved until κ has converged.

import { anderson } from "./anderson.js";
import { halvesOf, integrated, remaining } from "./course.js";
import { dotProduct } from "./path_equations.js";
import { saidIn } from "./drift.js";

const COARSE = 0.8; // first step
const APPROACH = 32; // first end of time
const STEP_ERROR = 2e-5; // of κ, relative: what halving the step would change
const END_ERROR = 3e-6; // of κ², relative: what the linearised end may be wrong by
const COURSE_TOLERANCE = 1e-7; // change of a composition in a sweep
const KAPPA_TOLERANCE = 1e-8; // relative change of κ in a sweep
const MAX_SWEEPS = 40;
const MOST_NUMBERS = 2 ** 21; // steps times states

/**
 * κ of the path of leading order: a number, NaN if the equations have no solution that sweeps find, or null if the path
 * takes too many steps. `left` is the left eigenvector of the saddle's unstable direction, positive towards the side that
 * noise must reach, and `growth` its eigenvalue.
 */
export function leastNoise(equations, saddle, left, growth) {
  const ends = { equations, saddle, left, growth };
  let nSteps = Math.round(APPROACH / COARSE);
  let found = solvePath(ends, hearingSaddle(ends, nSteps), COARSE);
  while (found && endError(ends, found) > END_ERROR) {
    nSteps += Math.floor(nSteps / 2);
    if (nSteps * saddle.length > MOST_NUMBERS) return null;
    found = solvePath(ends, lengthened(ends, found.x, nSteps), COARSE);
  }
  let step = COARSE;
  let error = Infinity;
  while (found && error > STEP_ERROR) {
    [step, nSteps] = [step / 2, 2 * nSteps];
    if (nSteps * saddle.length > MOST_NUMBERS) return null;
    const previous = found.kappa;
    found = solvePath(ends, halvesOf(found.x), step);
    error = found ? Math.abs(found.kappa - previous) / (16 * found.kappa) : Infinity;
  }
  return found && found.kappa > 0 ? found.kappa : NaN;
}

/** The path of agents whose partners speak as at the saddle: it ends there from everywhere. */
function hearingSaddle({ equations, saddle }, nSteps) {
  const Q = saidIn(equations.q, saddle);
  const rate = (_, x) => {
    const out = equations.hearing(equations.keep(x).kept, Q);
    for (let i = 0; i < out.length; i++) out[i] -= x[i];
    return out;
  };
  return integrated(rate, emptyMemories(saddle.length), nSteps, COARSE);
}

function emptyMemories(size) {
  const x = new Float64Array(size);
  x[0] = 1;
  return x;
}

/** The course on a longer time, with a tail that fades towards the saddle. */
function lengthened({ saddle, growth }, course, nSteps) {
  const last = course.at(-1);
  const tail = Array.from({ length: nSteps + 1 - course.length }, (_, k) => {
    const fading = Math.exp(-growth * COARSE * (k + 1));
    return last.map((value, i) => saddle[i] + fading * (value - saddle[i]));
  });
  return [...course, ...tail];
}

/** The fixed point of sweeps from this course, or null. */
function solvePath(ends, guess, step) {
  const size = ends.saddle.length;
  let [latest, before] = [{ x: guess, kappa: 0 }, null];
  const advance = (state) => {
    const course = guess.map((_, k) => state.subarray(k * size, (k + 1) * size));
    [before, latest] = [latest, sweepPath(ends, course, step)];
    return joined(latest.x);
  };
  const done = (residual) =>
    residual.every((value) => Math.abs(value) < COURSE_TOLERANCE) &&
    Math.abs(latest.kappa - before.kappa) < KAPPA_TOLERANCE * Math.abs(latest.kappa);
  return anderson(advance, joined(guess), done, MAX_SWEEPS) && latest;
}

function joined(course) {
  const out = new Float64Array(course.length * course[0].length);
  course.forEach((node, k) => out.set(node, k * node.length));
  return out;
}

/** The momentum along x, and x under this momentum. */
function sweepPath({ equations, saddle, left, growth }, course, step) {
  const nSteps = course.length - 1;
  const along = halvesOf(course);
  const back = (number, p) => equations.transposed(along[2 * nSteps - number], p);
  const p = integrated(back, left, nSteps, step).reverse();
  const momentum = halvesOf(p);
  const work = momentum.map((one, k) => equations.work(along[k], one));
  const rest = work.at(-1) / (2 * growth);
  const ahead = remaining(work, step).map((value) => value + rest);
  const factor = -p[0][0] / ahead[0];
  for (const one of new Set([...p, ...momentum])) for (let i = 0; i < one.length; i++) one[i] *= factor;
  const target = ahead.map((value) => factor * factor * value);
  const held = (number, x) => {
    const push = equations.noise(x, p[number]);
    const amount = (target[number] + dotProduct(p[number], x)) / dotProduct(p[number], push);
    for (let i = 0; i < x.length; i++) x[i] -= amount * push[i];
  };
  const rate = (number, x) => {
    const out = equations.drift(x);
    const push = equations.noise(x, momentum[number]);
    for (let i = 0; i < out.length; i++) out[i] += push[i];
    return out;
  };
  const x = integrated(rate, emptyMemories(saddle.length), nSteps, step, held);
  return { x, p, kappa: Math.sign(factor) * Math.sqrt(target[0]) };
}

/** The relative error of κ² from the linearised end: the part after the last time, times its nonlinearity. */
function endError({ equations, left, growth }, { x, p, kappa }) {
  const part = equations.work(x.at(-1), p.at(-1)) / (2 * growth * kappa * kappa);
  const off = equations.transposed(x.at(-1), left).map((value, i) => value - growth * left[i]);
  return (part * spread(off)) / (growth * spread(left));
}

function spread(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return high - low;
}
