// The messages of a tilted population, whose fixed point is the path of least action (see least_action.js).
//
// Given the messages g_ab(t), with G = Σ_ab g_ab g_ba,
//
//     du_j/dt = Σ_(Γ(i,a,b) = j) u_i q_a(i) g_ba - ½(G + 1) u_j,   -dv_i/dt = Σ_ab q_a(i) g_ba v_Γ(i,a,b) - ½(G + 1) v_i
//
// are linear. u goes forward from empty memories, v backward from the saddle, and both give new messages, g_ab = Σ_i u_i
// q_a(i) v_Γ(i,a,b). Newton's method with GMRES finds the fixed point in their logarithms. Steps are equal in τ,
// τ = t/LONG + log(1 + t/firstTime)/GROWTH, since messages change fast at the start.

import { halvesOf } from "./course.js";
import { krylovSolution } from "./krylov.js";
import { dotProduct, pathEquations } from "./path_equations.js";

const [LONG, GROWTH] = [0.8, 0.5];
export const ROUGH = 1e-3; // size of residuals below which the next may be larger
export const SHORT_SEARCH = 300; // evaluations
const MAX_KRYLOV = 150;
const [LOOSE, EXACT, SLOW] = [1e-2, 1e-6, 0.3];
const DIFFERENCE = 1e-6; // of logarithms of messages, for their derivatives
const FARTHEST = 3; // that logarithms may move in a step
const SMALLEST_PART = 0.03; // of a step
const STRONGEST = 1e9; // of momenta

/** Times and dt/dτ at nodes and middles from 0 to `end`, with each step in as many parts. */
export function meshUntil(end, parts, firstTime) {
  const tau = end / LONG + Math.log1p(end / firstTime) / GROWTH;
  const nSteps = parts * Math.ceil(tau);
  const first = (GROWTH / LONG) * firstTime;
  const time = Array.from({ length: 2 * nSteps + 1 }, (_, k) => {
    const z = omega((GROWTH * tau * k) / (2 * nSteps) + first + Math.log(first));
    return Math.max((LONG / GROWTH) * (z - first), 0);
  });
  const pace = time.map((t) => tau / nSteps / (1 / LONG + 1 / (GROWTH * (t + firstTime))));
  return { time, pace, nNodes: nSteps + 1 };
}

/** z with z + log z = known. */
function omega(known) {
  let z = known > 1 ? known - Math.log(known) : Math.exp(known - Math.exp(Math.min(known, 0)));
  for (let step = 0; step < 40; step++) {
    const change = (z * (known - z - Math.log(z))) / (z + 1);
    z += change;
    if (Math.abs(change) < 1e-16 * z) break;
  }
  return z;
}

/** A policy with some random answers, a saddle {left, growth, spread, said} and a mesh. */
export class MessageProblem {
  constructor(q, space, ends, mesh) {
    Object.assign(this, { q, space, ends, mesh, evaluations: 0 });
  }

  /** The equations of agents who with a chance `atRandom` answer as at the saddle. */
  equations(atRandom) {
    const { said } = this.ends;
    return pathEquations(this.q.map((chance, i) => (1 - atRandom) * chance + atRandom * said[i & 1]), this.space);
  }

  /** Messages that are the same at all times: as at the saddle. */
  steady() {
    const { said } = this.ends;
    return Float64Array.from({ length: 4 * this.mesh.nNodes }, (_, i) => Math.log(said[(i >> 1) & 1]));
  }

  /** {logarithms, residual, size, kappa, last, strength} of messages, or null where they leave all bounds. */
  evaluate(logarithms, equations) {
    this.evaluations++;
    const nodes = Array.from({ length: this.mesh.nNodes }, (_, n) => logarithms.subarray(4 * n, 4 * n + 4));
    const messages = halvesOf(nodes).map((one) => one.map(Math.exp));
    const u = forwardCourse(messages, this.mesh.pace, equations);
    const last = u.at(-1);
    const largest = last.reduce((most, value) => Math.max(most, value), 0);
    if (!(largest > 0) || !last.every(Number.isFinite)) return null;
    const strength = this.strength(last.map((value) => value / largest));
    if (strength === null) return null;
    const rest = (strength ** 2 * this.ends.spread) / (4 * this.ends.growth);
    const end = this.ends.left.map((value) => Math.exp(strength * value + rest));
    const v = backwardCourse(messages, this.mesh.pace, end, equations);
    const scale = dotProduct(u[0], v[0]);
    const again = new Float64Array(logarithms.length);
    for (let n = 0; n < u.length; n++) {
      const sums = equations.met(equations.keep(u[n]).kept, v[n]);
      for (let i = 0; i < 4; i++) again[4 * n + i] = Math.log(sums[i] / scale);
    }
    if (!again.every(Number.isFinite)) return null;
    const residual = again.map((value, i) => value - logarithms[i]);
    const size = Math.sqrt(dotProduct(residual, residual) / residual.length);
    const kappa = Math.sign(strength) * Math.sqrt(Math.max(0, -2 * Math.log(v[0][0])));
    const composition = last.map((value, i) => (value * end[i]) / scale);
    return { logarithms, residual, size, kappa, last: composition, strength };
  }

  /** The strength of the momentum with which u, up to a factor, ends on the linearised path, or null. */
  strength(u) {
    const { left, growth, spread } = this.ends;
    const beyond = (strength) => {
      const largest = left.reduce((most, value) => Math.max(most, strength * value), -Infinity);
      let [sum, weighted] = [0, 0];
      for (let i = 0; i < u.length; i++) {
        const x = u[i] * Math.exp(strength * left[i] - largest);
        sum += x;
        weighted += x * left[i];
      }
      return weighted / sum + (strength * spread) / (2 * growth);
    };
    let farthest = 1;
    while (!(beyond(-farthest) < 0 && beyond(farthest) > 0)) {
      farthest *= 2;
      if (farthest > STRONGEST) return null;
    }
    return rootBetween(beyond, -farthest, farthest);
  }

  /** The start of the smallest residual. */
  nearest(starts, atRandom) {
    const equations = this.equations(atRandom);
    const sizes = starts.map((start) => this.evaluate(start, equations)?.size ?? Infinity);
    return starts[sizes.indexOf(Math.min(...sizes))];
  }

  /** The solution by Newton's method, or null if it does not converge within about so many evaluations. */
  solve(start, atRandom, tolerance, most = SHORT_SEARCH) {
    const equations = this.equations(atRandom);
    let found = this.evaluate(start, equations);
    let accuracy = LOOSE;
    const before = this.evaluations;
    while (found && !(found.size < tolerance)) {
      if (this.evaluations >= before + most) return null;
      const nearer = this.nearer(found, this.newtonStep(found, equations, accuracy), equations);
      if (!nearer && accuracy === EXACT) return null;
      if (!nearer || nearer.size > SLOW * found.size) accuracy = EXACT;
      found = nearer ?? found;
    }
    return found;
  }

  newtonStep(found, equations, accuracy) {
    const product = (direction) => {
      const scale = DIFFERENCE / Math.max(largestOf(direction), 1e-300);
      const there = this.evaluate(
        found.logarithms.map((value, i) => value + scale * direction[i]),
        equations,
      );
      return direction.map((_, i) => (there ? (found.residual[i] - there.residual[i]) / scale : NaN));
    };
    return krylovSolution(product, found.residual, accuracy, MAX_KRYLOV);
  }

  nearer(found, step, equations) {
    for (let part = Math.min(1, FARTHEST / largestOf(step)); part > SMALLEST_PART; part /= 2) {
      const there = this.evaluate(
        found.logarithms.map((value, i) => value + part * step[i]),
        equations,
      );
      if (there && there.size < Math.max(ROUGH, (1 - part / 10) * found.size)) return there;
    }
    return null;
  }
}

function largestOf(values) {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
}

/** The root of a rising function, by bisection and secants in turn. */
function rootBetween(f, from, to) {
  let [low, high] = [from, to];
  let [below, above] = [f(low), f(high)];
  for (let step = 0; step < 200 && high - low > 1e-14 * Math.max(Math.abs(low), Math.abs(high)); step++) {
    const secant = low - (below * (high - low)) / (above - below);
    const middle = step % 3 < 2 && secant > low && secant < high ? secant : (low + high) / 2;
    const value = f(middle);
    if (value === 0) return middle;
    if (value < 0) [low, below] = [middle, value];
    else [high, above] = [middle, value];
  }
  return (low + high) / 2;
}

function leaving(g) {
  return (g[0] * g[0] + 2 * g[1] * g[2] + g[3] * g[3] + 1) / 2;
}

/** du/dt. */
function forwards(u, g, equations) {
  const { kept } = equations.keep(u);
  const rate = leaving(g);
  const out = new Float64Array(u.length);
  out[0] = -rate * u[0];
  for (let j = 0; j < kept.length; j++) {
    const a = j & 1;
    out[1 + 2 * j] = kept[j] * g[a] - rate * u[1 + 2 * j];
    out[2 + 2 * j] = kept[j] * g[2 + a] - rate * u[2 + 2 * j];
  }
  return out;
}

/** -dv/dt. */
function backwards(v, g, { q, memory }) {
  const rate = leaving(g);
  const then = new Float64Array((v.length - 1) / 2);
  for (let j = 0; j < then.length; j++) {
    const a = j & 1;
    then[j] = g[a] * v[1 + 2 * j] + g[2 + a] * v[2 + 2 * j];
  }
  const out = new Float64Array(v.length);
  for (let i = 0; i < v.length; i++) {
    out[i] = q[2 * i] * then[2 * memory[i]] + q[2 * i + 1] * then[2 * memory[i] + 1] - rate * v[i];
  }
  return out;
}

/** u at the nodes, by Runge-Kutta of order four in τ. */
function forwardCourse(messages, pace, equations) {
  const start = new Float64Array(equations.space.nStates);
  start[0] = 1;
  const course = [start];
  const rate = (place, y) => forwards(y, messages[place], equations);
  for (let n = 0; 2 * n + 2 < messages.length; n++) course.push(stepped(course[n], rate, pace, 2 * n, 1));
  return course;
}

/** v at the nodes, by the transposed steps, so that Σuv is conserved. */
function backwardCourse(messages, pace, end, equations) {
  const course = [Float64Array.from(end)];
  const rate = (place, y) => backwards(y, messages[place], equations);
  for (let place = messages.length - 1; place > 0; place -= 2) course.push(stepped(course.at(-1), rate, pace, place, -1));
  return course.reverse();
}

function stepped(y, rate, pace, place, way) {
  const [h, middle, last] = [pace[place], pace[place + way], pace[place + 2 * way]];
  const one = rate(place, y);
  const two = rate(place + way, ahead(y, h / 2, one));
  const three = rate(place + way, ahead(y, middle / 2, two));
  const four = rate(place + 2 * way, ahead(y, middle, three));
  const next = new Float64Array(y.length);
  for (let i = 0; i < y.length; i++) {
    next[i] = y[i] + (h * one[i] + 2 * middle * (two[i] + three[i]) + last * four[i]) / 6;
  }
  return next;
}

function ahead(y, step, slope) {
  const out = new Float64Array(y.length);
  for (let i = 0; i < y.length; i++) out[i] = y[i] + step * slope[i];
  return out;
}

/** Messages at the times of a longer mesh: the values at `wait` times the old end, and at the end, last longer. */
export function movedMessages(logarithms, before, after, wait) {
  const [end, until] = [before.time.at(-1), after.time.at(-1)];
  const extra = (until - end) * (wait < 1 ? 0.5 : 1);
  const nodes = before.time.filter((_, k) => k % 2 === 0);
  const out = new Float64Array(4 * after.nNodes);
  let k = 0;
  for (let n = 0; n < after.nNodes; n++) {
    const time = after.time[2 * n];
    const source = Math.min(time < wait * end ? time : Math.max(wait * end, time - extra), end);
    while (k + 2 < nodes.length && nodes[k + 1] < source) k++;
    const part = Math.min(Math.max((source - nodes[k]) / (nodes[k + 1] - nodes[k]), 0), 1);
    for (let i = 0; i < 4; i++) {
      out[4 * n + i] = (1 - part) * logarithms[4 * k + i] + part * logarithms[4 * k + 4 + i];
    }
  }
  return out;
}
