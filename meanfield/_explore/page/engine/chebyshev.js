// Piecewise Chebyshev interpolants, as fine as a tolerance asks, and the roots of their pieces.

const DEGREE = 16;
const TAIL = 3;
export const MAX_DEPTH = 20;
const ROUNDING = 1e-13;
const HALVINGS = 60;
const NODES = Array.from({ length: DEGREE + 1 }, (_, k) => Math.cos((Math.PI * (k + 0.5)) / (DEGREE + 1)));

/**
 * Pieces {left, right, series} of f, from left to right: intervals between `breaks`, halved until the last coefficients
 * are small.
 */
export function interpolate(f, breaks, tolerance) {
  const pieces = (left, right, depth) => {
    const series = fitted(f, left, right);
    const resolved = tailOf(series) <= Math.max(tolerance * largest(series), ROUNDING);
    if (resolved || depth === MAX_DEPTH) return [{ left, right, series }];
    const middle = (left + right) / 2;
    return [...pieces(left, middle, depth + 1), ...pieces(middle, right, depth + 1)];
  };
  return breaks.slice(1).flatMap((right, i) => pieces(breaks[i], right, 0));
}

/** The coefficients of f on an interval: a cosine transform of its values at the nodes. */
export function fitted(f, left, right) {
  const n = NODES.length;
  const values = NODES.map((u) => f((left + right) / 2 + ((right - left) / 2) * u));
  return NODES.map((_, j) => {
    const sum = values.reduce((part, value, k) => part + value * Math.cos((Math.PI * j * (k + 0.5)) / n), 0);
    return (j === 0 ? 1 : 2) * (sum / n);
  });
}

/** The largest of the last coefficients, which the error of the interpolant hardly exceeds. */
export function tailOf(c) {
  return largest(c.slice(-TAIL));
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

/** The real roots of a series, as arguments between `left` and `right`, in rising order. */
export function realRoots(c, left, right) {
  return rootsInside(c).map((u) => (left + right) / 2 + ((right - left) / 2) * u);
}

/** The roots between -1 and 1, each between two extrema, which are the roots of the derivative. */
function rootsInside(c) {
  if (c.length === 1) return [];
  const turns = [-1, ...rootsInside(derivative(c)), 1];
  const f = (u) => clenshaw(c, u);
  const values = turns.map(f);
  return turns.slice(1).flatMap((turn, i) => {
    if (values[i] * values[i + 1] < 0) return [bisected(f, turns[i], turn)];
    return values[i + 1] === 0 && turn < 1 ? [turn] : [];
  });
}

/** Where the sign of f changes. */
export function bisected(f, low, high) {
  const first = Math.sign(f(low));
  for (let step = 0; step < HALVINGS; step++) {
    const middle = (low + high) / 2;
    if (Math.sign(f(middle)) === first) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
