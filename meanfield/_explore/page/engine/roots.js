// All roots of a smooth function on an interval, from its piecewise Chebyshev interpolant.

import { bisected, clenshaw, derivative, interpolate, realRoots } from "./chebyshev.js";

const OVERLAP = 1e-7;
const SAME_ROOT = 1e-8;
const FLAT = 1e-12;
const NARROW = 1e-3; // a stretch of zeros, up to which it is one root
const HALVINGS = 60;

/**
 * Roots between the first and the last of `breaks`, in rising order, the smallest |f| at an extremum, and the stretches
 * on which f vanishes. `polish` is the same function, computed more accurately, for the roots themselves. Where f is so
 * flat that no slope tells where it changes its sign, the root is the middle of the stretch on which it vanishes.
 */
export function allRoots(f, breaks, tolerance, polish = f) {
  const { pieces, error } = interpolate((x) => [f(x)], breaks, tolerance, true);
  const roots = [];
  const flat = [];
  const samples = [];
  let closest = Infinity;
  for (const { left, right, series } of pieces) {
    const [c] = series;
    const slope = derivative(c);
    const half = (right - left) / 2;
    const at = (u) => (left + right) / 2 + half * u;
    const stops = monotoneStretches(slope);
    const values = stops.map((u) => clenshaw(c, u));
    values.slice(1, -1).forEach((value) => (closest = Math.min(closest, Math.abs(value))));
    samples.push(...stops.map((u, i) => ({ x: at(u), value: values[i] })));
    for (let i = 0; i + 1 < stops.length; i++) {
      const [a, b] = [values[i], values[i + 1]];
      const [from, to] = [at(stops[i]), at(stops[i + 1])];
      if (Math.max(Math.abs(a), Math.abs(b)) < FLAT) flat.push([from, to]);
      else if (a * b <= 0 && a !== b) {
        const u = bisected(c, stops[i], stops[i + 1]);
        roots.push(polished(polish, at(u), clenshaw(slope, u) / half, [2 * from - to, 2 * to - from]));
      }
    }
  }
  roots.sort((a, b) => a - b);
  const distinct = roots.filter((root, i) => i === 0 || root - roots[i - 1] > SAME_ROOT);
  return { ...completed(distinct, samples, Math.max(FLAT, error), joined(flat), polish), closest };
}

/** Newton's steps, within limits: a slope of rounding errors would throw the root anywhere. */
function polished(f, start, slope, [low, high]) {
  let root = start;
  for (let step = 0; step < 3; step++) root = Math.min(high, Math.max(low, root - f(root) / slope));
  return root;
}

/**
 * The roots with those that hide in noise, without those that it feigns at the ends, and the stretches left. Between two
 * samples of opposite signs above the noise there is an odd number of roots.
 */
function completed(roots, samples, noise, flat, f) {
  const sure = samples.filter(({ value }) => Math.abs(value) > noise).sort((a, b) => a.x - b.x);
  if (!sure.length) return { roots, flat };
  // Beyond the last sample above the noise no sign is known.
  const kept = roots.filter((root) => sure[0].x <= root && root <= sure.at(-1).x);
  for (let i = 0; i + 1 < sure.length; i++) {
    const [left, right] = [sure[i].x, sure[i + 1].x];
    const inside = kept.filter((root) => left <= root && root <= right);
    if (sure[i].value * sure[i + 1].value > 0 || inside.length % 2) continue;
    let hidden = flat.filter((stretch) => left <= stretch[0] && stretch[1] <= right);
    if (!hidden.length) hidden = [inside.length ? nearest(inside) : signChange(f, left, right)];
    flat = flat.filter((stretch) => !hidden.includes(stretch));
    const [from, to] = hidden[0];
    if (hidden.length === 1 && to - from < NARROW) kept.push((from + to) / 2);
    else flat.push(...hidden);
  }
  return { roots: kept.sort((a, b) => a - b), flat: flat.sort((a, b) => a[0] - b[0]) };
}

/** The two neighbours that are nearest to each other. */
function nearest(numbers) {
  const pairs = numbers.slice(1).map((number, i) => [numbers[i], number]);
  return pairs.reduce((near, pair) => (pair[1] - pair[0] < near[1] - near[0] ? pair : near));
}

/** The stretch around a sign change on which f is zero up to rounding. */
function signChange(f, left, right) {
  const sign = Math.sign(f(left));
  if (Math.min(sign * f(left), -sign * f(right)) <= FLAT) return [left, right];
  const edge = (level) => {
    let [low, high] = [left, right];
    for (let i = 0; i < HALVINGS; i++) {
      const middle = (low + high) / 2;
      if (sign * f(middle) > level) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  };
  return [edge(FLAT), edge(-FLAT)];
}

/** Stretches that touch or overlap as one. */
function joined(stretches) {
  const whole = [];
  for (const [low, high] of stretches.sort((a, b) => a[0] - b[0])) {
    const last = whole.at(-1);
    if (last && low <= last[1]) last[1] = Math.max(last[1], high);
    else whole.push([low, high]);
  }
  return whole;
}

/** The ends of a piece, a little beyond, and the extrema between them; so a root at an end is in a neighbour or both. */
function monotoneStretches(slope) {
  const reach = 1 + 2 * OVERLAP;
  return [-reach, ...realRoots(slope, -1, 1), reach];
}
