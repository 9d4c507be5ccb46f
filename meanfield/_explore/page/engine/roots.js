// All roots of a smooth function on an interval, from its piecewise Chebyshev interpolant.

import { MAX_DEPTH, bisected, clenshaw, derivative, fitted, largest, realRoots, tailOf } from "./chebyshev.js";

const UNRESOLVED = 100; // error of a piece in units of its last coefficients, where these are still large
const STRAIGHT = 2; // factor by which slopes may differ about a simple root
const STEEP = 64; // a polynomial of degree 16 below 1 has slopes up to 32 in the middle of an interval of length 1
const MOST_PIECES = 1000; // where rounding is larger than it should be, halving does not end by itself
const STEPS = 20; // of Newton's method; two or three are enough where roots are not about to merge
const NARROW = 0.1; // a stretch up to which one root, its middle, stands for all in it
const AROUND = Array.from({ length: 9 }, (_, i) => i / 4 - 1);

/**
 * Roots {x, slope} between the first and the last of `breaks`, in rising order, and the stretches [left, right] on which
 * f is zero up to its error and too wide for a root. A root has slope 0 if it stands for a stretch. Errors of f are below
 * `tolerance`, and of `exact`, which is the same function, below `rounding`.
 *
 * The sign of the interpolant is certain where it is larger than its error. Two samples, ends and extrema of pieces, of
 * opposite and certain signs with none of uncertain sign between them hold one root if the interpolant is almost
 * straight as long as it is smaller than its error. Where that does not tell, pieces are halved up to rounding.
 */
export function allRoots(f, breaks, tolerance, exact, rounding) {
  let pieces = breaks.slice(1).map((right, i) => pieceOf(f, breaks[i], right, tolerance));
  let found = bracketed(pieces);
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    const open = (piece) => found.undecided.some(({ left, right }) => piece.left < right.x && piece.right > left.x);
    const coarse = (piece) => (piece.accuracy > rounding || !piece.resolved) && open(piece);
    if (!pieces.some(coarse) || pieces.length > MOST_PIECES) break;
    pieces = pieces.flatMap((piece) => {
      if (!coarse(piece)) return [piece];
      const { left, right, accuracy, resolved } = piece;
      const [look, error] = accuracy > rounding && !resolved ? [f, tolerance] : [exact, rounding];
      const middle = (left + right) / 2;
      return [pieceOf(look, left, middle, error), pieceOf(look, middle, right, error)];
    });
    found = bracketed(pieces);
  }
  const stretches = found.undecided.reduce((before, bracket) => joined(before, stretchOf(pieces, bracket)), []);
  const narrow = stretches.filter(({ left, right, odd }) => odd !== null && right - left < NARROW);
  const roots = found.simple.map((root) => ({ x: polished(exact, root, rounding), slope: root.slope }));
  roots.push(...narrow.map(({ left, right }) => ({ x: (left + right) / 2, slope: 0 })));
  const flat = stretches.filter((stretch) => !narrow.includes(stretch)).map(({ left, right }) => [left, right]);
  return { roots: roots.sort((a, b) => a.x - b.x), flat };
}

/** The interpolant on an interval, with its error and its extrema. */
function pieceOf(f, left, right, accuracy) {
  const series = fitted(f, left, right);
  const slope = derivative(series);
  const tail = tailOf(series);
  const resolved = tail <= accuracy * Math.max(1, largest(series));
  const error = Math.max(accuracy, resolved ? tail : UNRESOLVED * tail);
  return { left, right, series, slope, accuracy, resolved, error, extrema: realRoots(slope, left, right) };
}

/** Simple roots, and brackets of samples of certain sign, or ends of the line, between which there may be others. */
function bracketed(pieces) {
  const nothing = { value: NaN, error: Infinity, turns: false };
  const samples = [{ x: pieces[0].left, ...nothing }];
  for (const piece of pieces) {
    const sample = (turns) => (x) => ({ x, value: valueOf(piece, x), error: piece.error, turns });
    samples.push(sample(false)(piece.left), ...piece.extrema.map(sample(true)), sample(false)(piece.right));
  }
  samples.push({ x: pieces.at(-1).right, ...nothing });
  const stops = [...samples.keys()].filter((i) => !(Math.abs(samples[i].value) <= samples[i].error));
  const [simple, undecided] = [[], []];
  for (let n = 0; n + 1 < stops.length; n++) {
    const [left, right] = [samples[stops[n]], samples[stops[n + 1]]];
    const hidden = samples.slice(stops[n] + 1, stops[n + 1]);
    const odd = left.value * right.value < 0;
    const root = odd && !hidden.some(({ turns }) => turns) ? simpleRoot(pieces, left.x, right.x) : null;
    if (root) simple.push(root);
    else if (odd || hidden.length) undecided.push({ left, right, hidden: hidden.map(({ x }) => x), odd });
  }
  return { simple, undecided };
}

/** The root between two arguments of opposite signs, with its slope, or null if there may be others. */
function simpleRoot(pieces, left, right) {
  const x = crossing(pieces, left, right, 0);
  const piece = pieceAt(pieces, x);
  const slope = slopeOf(piece, x);
  const steep = Math.abs(slope) * (piece.right - piece.left) > STEEP * piece.error;
  if (!piece.resolved || !steep || left === right) return null;
  const around = AROUND.map((part) => Math.min(right, Math.max(left, x + (part * piece.error) / slope)));
  const ratios = around.map((near) => slopeOf(pieceAt(pieces, near), near) / slope);
  return ratios.every((ratio) => ratio > 1 / STRAIGHT && ratio < STRAIGHT) ? { x, slope, left, right } : null;
}

/** Newton's steps until they are below the error of f, within the bracket. */
function polished(f, { x, slope, left, right }, rounding) {
  let root = x;
  for (let step = 0; step < STEPS; step++) {
    const value = f(root);
    root = Math.min(right, Math.max(left, root - value / slope));
    if (Math.abs(value) <= rounding) break;
  }
  return root;
}

/** The part of a bracket on which |f| is below twice its error. */
function stretchOf(pieces, { left, right, hidden, odd }) {
  const inner = hidden.length ? hidden : [crossing(pieces, left.x, right.x, 0)];
  const bound = 2 * Math.max(...inner.map((x) => pieceAt(pieces, x).error));
  const edge = ({ x, value }, other) =>
    Math.abs(value) > bound ? crossing(pieces, x, other, Math.sign(value) * bound) : x;
  const known = Number.isFinite(left.value + right.value);
  return { left: edge(left, inner[0]), right: edge(right, inner.at(-1)), odd: known ? odd : null };
}

/** The stretches with another one, taken together with the last if they touch. */
function joined(stretches, next) {
  const last = stretches.at(-1);
  if (!last || last.right < next.left) return [...stretches, next];
  const odd = last.odd === null || next.odd === null ? null : last.odd !== next.odd;
  return [...stretches.slice(0, -1), { left: last.left, right: next.right, odd }];
}

function pieceAt(pieces, x) {
  return pieces.findLast(({ left }) => left <= x) ?? pieces[0];
}

function scaled({ left, right }, x) {
  return (2 * x - left - right) / (right - left);
}

function valueOf(piece, x) {
  return clenshaw(piece.series, scaled(piece, x));
}

function slopeOf(piece, x) {
  return (clenshaw(piece.slope, scaled(piece, x)) * 2) / (piece.right - piece.left);
}

/** Where f is at a level between two arguments, by bisection; the nearer of them if it jumps there. */
function crossing(pieces, left, right, level) {
  const above = (x) => valueOf(pieceAt(pieces, x), x) - level;
  const [first, last] = [above(left), above(right)];
  if (first * last >= 0) return Math.abs(first) < Math.abs(last) ? left : right;
  return bisected(above, left, right);
}
