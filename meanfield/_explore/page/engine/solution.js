// Solutions of the rate equation: Tsitouras' pair of orders 5 and 4 with its step size control.
//
// Source: Computers & Mathematics with Applications 62, 770 (2011).

import { consensusState } from "./memory.js";

const STAGES = [
  [0.161],
  [-0.008480655492356989, 0.335480655492357],
  [2.8971530571054935, -6.359448489975075, 4.3622954328695815],
  [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525],
  [5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383],
  [0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774],
];
// Of order 5 less of order 4
const ERROR = [
  0.0017800110522257714, 0.0008164344596567469, -0.007880878010261995, 0.1447110071732629, -0.5823571654525552,
  0.45808210592918697, -1 / 66,
];
// b_i(θ) = Σ_n INTERPOLANT[i][n] θ^(n + 1)
const INTERPOLANT = [
  [1.0, -2.763706197274826, 2.9132554618219126, -1.0530884977290216],
  [0.0, 0.1317, -0.2234, 0.1017],
  [0.0, 3.9302962368947516, -5.941033872131505, 2.490627285651253],
  [0.0, -12.411077166933676, 30.33818863028232, -16.548102889244902],
  [0.0, 37.50931341651104, -88.1789048947664, 47.37952196281928],
  [0.0, -27.896526289197286, 65.09189467479366, -34.87065786149661],
  [0.0, 1.5, -4.0, 2.5],
];
const RTOL = 1e-8;
const ATOL = 1e-11;
const FIRST_STEP = 0.1;
const AT_REST = 1e-8; // max|dx/dt|
const [SAFETY, LEAST_FACTOR, LARGEST_FACTOR, ORDER] = [0.9, 0.2, 10, 5];

/** All memories empty, or with `start` a share of agents who remember only word 0, and all others only word 1. */
export function startComposition(space, start) {
  const x = new Float64Array(space.nStates);
  if (start === null) x[0] = 1;
  else {
    x[consensusState(space, 0)] = start;
    x[consensusState(space, 1)] = 1 - start;
  }
  return x;
}

/**
 * The share of word 0 among all agents at the times, which increase from 0 on, and the composition at the last one. A
 * solution that comes to rest stays there.
 */
export function solution(population, start, times, { until = times.at(-1) } = {}) {
  const { q, space, share, committed } = population;
  const n = space.nStates;
  const x = Float64Array.from(start);
  const after = new Float64Array(n);
  const work = new Float64Array(2 * space.nKept);
  let k = Array.from({ length: 7 }, () => new Float64Array(n));
  const observe = (y) => share * saidIn(q, y)[0];
  const shares = [];
  let [now, step] = [0, FIRST_STEP];
  let largest = drift(population, x, k[0], work);
  while (shares.length < times.length && times[shares.length] <= 0) shares.push(observe(x));
  while (now < until && largest >= AT_REST) {
    const last = now + step >= until;
    const taken = last ? until - now : step;
    let moved = 0;
    for (let stage = 0; stage < 6; stage++) {
      after.set(x);
      STAGES[stage].forEach((weight, j) => addTo(after, taken * weight, k[j]));
      moved = drift(population, after, k[stage + 1], work);
    }
    const error = errorOf(x, after, k, taken);
    const factor = SAFETY * error ** (-1 / ORDER);
    if (error >= 1) {
      step = taken * Math.min(Math.max(factor, LEAST_FACTOR), SAFETY);
      continue;
    }
    const then = last ? until : now + taken;
    if (shares.length < times.length && times[shares.length] <= then) {
      const before = observe(x);
      const slopes = k.map(observe);
      while (shares.length < times.length && times[shares.length] <= then) {
        shares.push(interpolated(before, slopes, (times[shares.length] - now) / taken, taken));
      }
    }
    x.set(after);
    k = [k[6], ...k.slice(1, 6), k[0]];
    [now, largest] = [then, moved];
    step = taken * Math.min(Math.max(factor, 1), LARGEST_FACTOR);
  }
  while (shares.length < times.length) shares.push(observe(x));
  return { shares: shares.map((said) => said + committed[0]), composition: x, atRest: largest < AT_REST };
}

function addTo(sum, weight, vector) {
  for (let i = 0; i < sum.length; i++) sum[i] += weight * vector[i];
}

/** The estimated error of a step in units of the tolerance. */
function errorOf(x, after, k, taken) {
  let error = 0;
  for (let i = 0; i < x.length; i++) {
    let difference = 0;
    for (let j = 0; j < 7; j++) difference += ERROR[j] * k[j][i];
    difference *= taken / (ATOL + RTOL * Math.max(Math.abs(x[i]), Math.abs(after[i])));
    error += difference * difference;
  }
  const root = Math.sqrt(error / x.length);
  return Number.isFinite(root) ? root : Infinity;
}

function interpolated(before, slopes, part, taken) {
  let value = before;
  slopes.forEach((slope, j) => {
    const b = INTERPOLANT[j].reduceRight((sum, coefficient) => part * (coefficient + sum), 0);
    value += taken * b * slope;
  });
  return value;
}

/** Writes dx/dt = A(Q)ᵀx - x and returns max|dx/dt|; `work` holds 2 numbers for each kept memory. */
function drift({ q, space, share, committed }, x, slope, work) {
  const { nKept, longest, nStates } = space;
  const [first, second] = saidIn(q, x);
  const total = first + second;
  const Q0 = committed[0] + (share * first) / total;
  const Q1 = committed[1] + (share * second) / total;
  for (let k = 0; k < nKept; k++) {
    work[2 * k] = x[k] * q[2 * k];
    work[2 * k + 1] = x[k] * q[2 * k + 1];
  }
  for (let i = nKept, k = longest; i < nStates; i++) {
    work[2 * k] += x[i] * q[2 * i];
    work[2 * k + 1] += x[i] * q[2 * i + 1];
    k = k + 1 === nKept ? longest : k + 1;
  }
  slope[0] = -x[0];
  let largest = Math.abs(slope[0]);
  for (let k = 0; k < 2 * nKept; k++) {
    const i = 1 + 2 * k;
    slope[i] = work[k] * Q0 - x[i];
    slope[i + 1] = work[k] * Q1 - x[i + 1];
    largest = Math.max(largest, Math.abs(slope[i]), Math.abs(slope[i + 1]));
  }
  return largest;
}

/** Σ_i x_i q_w(i) for both words. */
export function saidIn(q, x) {
  const said = [0, 0];
  for (let i = 0; i < x.length; i++) {
    said[0] += x[i] * q[2 * i];
    said[1] += x[i] * q[2 * i + 1];
  }
  return said;
}
