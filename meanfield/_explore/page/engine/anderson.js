// Fixed points of maps whose linearisation is close to one of low rank.

import { solved } from "./eigenvalues.js";

const MEMORY = 8; // differences kept
const REGULARISATION = 1e-14; // of the least squares, relative: differences of converged iterates are parallel

/**
 * A solution of x = advance(x) by Anderson's mixing, or null if the iteration does not end or diverges. `done` says
 * whether the residual is small enough. Source: Walker and Ni, SIAM J. Numer. Anal. 49, 1715 (2011).
 */
export function anderson(advance, start, done, maxIterations) {
  let x = start;
  let previous = null;
  const moves = [];
  const changes = [];
  for (let iteration = 0; iteration < maxIterations; iteration++) {
    const value = advance(x);
    const residual = difference(value, x);
    if (!residual.every(Number.isFinite)) return null;
    if (done(residual)) return value;
    if (previous) {
      moves.push(difference(value, previous.value));
      changes.push(difference(residual, previous.residual));
      if (moves.length > MEMORY) {
        moves.shift();
        changes.shift();
      }
    }
    previous = { value, residual };
    x = value;
    if (changes.length) x = combinedStep(value, residual, moves, changes);
  }
  return null;
}

function combinedStep(value, residual, moves, changes) {
  const gram = changes.map((a) => changes.map((b) => product(a, b)));
  const trace = gram.reduce((sum, row, i) => sum + row[i], 0);
  gram.forEach((row, i) => (row[i] += REGULARISATION * trace));
  const weights = solved(
    gram,
    changes.map((a) => product(a, residual)),
  );
  const x = Float64Array.from(value);
  weights.forEach((weight, k) => {
    const move = moves[k];
    for (let i = 0; i < x.length; i++) x[i] -= weight * move[i];
  });
  return x;
}

function difference(a, b) {
  const out = new Float64Array(a.length);
  for (let i = 0; i < a.length; i++) out[i] = a[i] - b[i];
  return out;
}

function product(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}
