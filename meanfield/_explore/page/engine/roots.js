// All roots of a smooth function on an interval, from its piecewise Chebyshev interpolant.

import { bisected, clenshaw, derivative, interpolate, realRoots } from "./chebyshev.js";

const OVERLAP = 1e-7;
const SAME_ROOT = 1e-8;
const FLAT = 1e-12;

/**
 * Roots between the first and the last of `breaks`, in rising order, the smallest |f| at an extremum, and the stretches
 * on which f vanishes. `polish` is the same function, computed more accurately, for the roots themselves.
 */
export function allRoots(f, breaks, tolerance, polish = f) {
  const { pieces } = interpolate((x) => [f(x)], breaks, tolerance, true);
  const roots = [];
  let closest = Infinity;
  const flat = [];
  for (const { left, right, series } of pieces) {
    const [c] = series;
    const slope = derivative(c);
    const at = (u) => (left + right) / 2 + ((right - left) / 2) * u;
    const stops = monotoneStretches(slope);
    const values = stops.map((u) => clenshaw(c, u));
    values.slice(1, -1).forEach((value) => (closest = Math.min(closest, Math.abs(value))));
    for (let i = 0; i + 1 < stops.length; i++) {
      const [a, b] = [values[i], values[i + 1]];
      if (Math.max(Math.abs(a), Math.abs(b)) < FLAT) flat.push([at(stops[i]), at(stops[i + 1])]);
      else if (a * b <= 0 && a !== b) {
        const u = bisected(c, stops[i], stops[i + 1]);
        roots.push(polished(polish, at(u), (2 * clenshaw(slope, u)) / (right - left)));
      }
    }
  }
  roots.sort((a, b) => a - b);
  return { roots: roots.filter((root, i) => i === 0 || root - roots[i - 1] > SAME_ROOT), closest, flat: joined(flat) };
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

function polished(f, start, slope) {
  let root = start;
  for (let step = 0; step < 3; step++) root -= f(root) / slope;
  return root;
}

/** The ends of a piece, a little beyond, and the extrema between them; so a root at an end is in a neighbour or both. */
function monotoneStretches(slope) {
  const reach = 1 + 2 * OVERLAP;
  return [-reach, ...realRoots(slope, -1, 1), reach];
}
