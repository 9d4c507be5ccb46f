// Piecewise Chebyshev interpolants, as fine as a tolerance asks, and the roots of their pieces.

import { balanced, hessenbergEigenvalues } from "./eigenvalues.js";

const DEGREE = 16;
const TAIL = 3;
export const MAX_DEPTH = 20;
const ROUNDING = 1e-13;
const TRIM = 1e-15;
const NODES = Array.from({ length: DEGREE + 1 }, (_, k) => Math.cos((Math.PI * (k + 0.5)) / (DEGREE + 1)));

/**
 * Pieces {left, right, series} with one series of coefficients for each component of `f`, which maps a number to an
 * array of components. Intervals between `breaks` are halved until the last coefficients are small.
 */
export function interpolate(f, breaks, tolerance) {
  const pieces = [];
  let intervals = breaks.slice(1).map((right, i) => [breaks[i], right]);
  for (let depth = 0; depth <= MAX_DEPTH && intervals.length; depth++) {
    const halves = [];
    for (const [left, right] of intervals) {
      const series = fitted(f, left, right);
      const resolved = series.every((c) => tailOf(c) <= Math.max(tolerance * largest(c), ROUNDING));
      if (resolved || depth === MAX_DEPTH) pieces.push({ left, right, series });
      else halves.push([left, (left + right) / 2], [(left + right) / 2, right]);
    }
    intervals = halves;
  }
  return pieces;
}

/** The coefficients of each component of `f` on an interval. */
export function fitted(f, left, right) {
  const values = NODES.map((u) => f((left + right) / 2 + ((right - left) / 2) * u));
  return values[0].map((_, component) => coefficients(values.map((value) => value[component])));
}

/** The largest of the last coefficients, which the error of the interpolant hardly exceeds. */
export function tailOf(c) {
  return largest(c.slice(-TAIL));
}

/** Chebyshev coefficients from the values at the nodes: a cosine transform. */
function coefficients(values) {
  const n = DEGREE + 1;
  return Array.from({ length: n }, (_, j) => {
    let sum = 0;
    for (let k = 0; k < n; k++) sum += values[k] * Math.cos((Math.PI * j * (k + 0.5)) / n);
    return (j === 0 ? 1 : 2) * (sum / n);
  });
}

export function largest(values) {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
}

/** Σ_k c_k T_k(u). */
export function clenshaw(c, u) {
  let one = 0;
  let two = 0;
  for (let k = c.length - 1; k > 0; k--) [one, two] = [c[k] + 2 * u * one - two, one];
  return c[0] + u * one - two;
}

/** The derivative by u. */
export function derivative(c) {
  const n = c.length - 1;
  if (n === 0) return [0];
  const out = new Array(n).fill(0);
  for (let k = n; k > 0; k--) out[k - 1] = (out[k + 1] ?? 0) + 2 * k * c[k];
  out[0] /= 2;
  return out;
}

export function product(a, b) {
  const out = new Array(a.length + b.length - 1).fill(0);
  a.forEach((x, i) =>
    b.forEach((y, j) => {
      out[i + j] += (x * y) / 2;
      out[Math.abs(i - j)] += (x * y) / 2;
    }),
  );
  return out;
}

/** a + factor · b. */
export function combination(a, b, factor) {
  return Array.from({ length: Math.max(a.length, b.length) }, (_, k) => (a[k] ?? 0) + factor * (b[k] ?? 0));
}

/** The real roots of a series, as arguments between `left` and `right`, in rising order. */
export function realRoots(c, left, right) {
  const half = (right - left) / 2;
  const slope = derivative(c);
  return complexRoots(c)
    .filter(([, im]) => Math.abs(im) < 2e-9)
    .map(([re]) => (left + right) / 2 + half * improved(c, slope, re))
    .filter((x) => x > left && x < right)
    .sort((x, y) => x - y);
}

/** A root after steps of Newton's method: small last coefficients leave the eigenvalues with few digits. */
function improved(c, slope, start) {
  let u = start;
  for (let step = 0; step < 4; step++) {
    const move = clenshaw(c, u) / clenshaw(slope, u);
    if (!(Math.abs(move) < 1e-3)) break;
    u -= move;
  }
  return u;
}

/** All roots [real, imaginary] of Σ_k c_k T_k: eigenvalues of the companion matrix in Chebyshev's basis. */
function complexRoots(c) {
  let n = c.length - 1;
  while (n > 0 && Math.abs(c[n]) <= TRIM) n--;
  if (n < 1) return [];
  if (n === 1) return [[-c[0] / c[1], 0]];
  const rows = Array.from({ length: n }, () => new Array(n).fill(0));
  for (let k = 0; k < n - 1; k++) rows[k][k + 1] = rows[k + 1][k] = k === 0 ? Math.SQRT1_2 : 0.5;
  for (let k = 0; k < n; k++) rows[k][n - 1] -= (c[k] / c[n]) * (k === 0 ? Math.SQRT2 : 1) * 0.5;
  return hessenbergEigenvalues(balanced(rows));
}
