// All roots of a smooth function on an interval, from its piecewise Chebyshev interpolant.

import { bisected, clenshaw, derivative, interpolate, realRoots } from "./chebyshev.js";

const OVERLAP = 1e-7;
const SAME_ROOT = 1e-8;
const FLAT = 1e-12;

/**
 * Roots between the first and the last of `breaks`, in rising order, the smallest |f| at an extremum, and whether f
 * vanishes on a stretch. `polish` is the same function, computed more accurately, for the roots themselves.
 */
export function allRoots(f, breaks, tolerance, polish = f) {
  const { pieces } = interpolate((x) => [f(x)], breaks, tolerance, true);
  const roots = [];
  let closest = Infinity;
  let flat = false;
  for (const { left, right, series } of pieces) {
    const [c] = series;
    const slope = derivative(c);
    const stops = monotoneStretches(slope);
    const values = stops.map((u) => clenshaw(c, u));
    values.slice(1, -1).forEach((value) => (closest = Math.min(closest, Math.abs(value))));
    for (let i = 0; i + 1 < stops.length; i++) {
      const [a, b] = [values[i], values[i + 1]];
      if (Math.max(Math.abs(a), Math.abs(b)) < FLAT) flat = true;
      else if (a * b <= 0 && a !== b) {
        const u = bisected(c, stops[i], stops[i + 1]);
        const half = (right - left) / 2;
        roots.push(polished(polish, (left + right) / 2 + half * u, clenshaw(slope, u) / half));
      }
    }
  }
  roots.sort((a, b) => a - b);
  return { roots: roots.filter((root, i) => i === 0 || root - roots[i - 1] > SAME_ROOT), closest, flat };
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
