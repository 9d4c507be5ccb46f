// Linear stability of stationary compositions, by the leading eigenvalue of the reduced Jacobian.

import { flowSuccessors, saidNext } from "./flows.js";

// A policy that float64 rounds to a floor of 2e-16 has a zero eigenvalue displaced by the root of that floor.
const MARGINAL = 1e-7;
const SUBSPACES = [40, 80, 160, 320];
const MOST_STEPS = 90; // of the QR algorithm, for one eigenvalue
const EPSILON = 2 ** -52;

/**
 * 'stable', 'unstable' or 'marginal': a composition x of full memories at which all agents say Q, by the real part of
 * the leading eigenvalue, per unit of time. It is known to a thousandth: enough to tell its sign.
 */
export function stabilityOf(population, x, Q) {
  const eigenvalue = spectralAbscissa(flowJacobian(population, x, Q), population.space.nFlows, tells) - 1;
  return Math.abs(eigenvalue) <= MARGINAL ? "marginal" : eigenvalue < 0 ? "stable" : "unstable";
}

/** Whether an eigenvalue is known well enough to tell on which side of 1 it is. */
function tells(now, before) {
  return Math.abs(now - before) < Math.max(1e-10, 1e-3 * Math.abs(now - 1));
}

/**
 * The Jacobian plus the identity, on the weights of flows (see flows.js): agents move on as they hear Q, and a change
 * of what is said changes what all of them hear. Directions that change the number of agents are projected out.
 */
function flowJacobian({ q, space, share }, x, Q) {
  const said = saidNext(q, space);
  const successors = flowSuccessors(space);
  const law = spokenFrom(x, q, space);
  const answers = [new Float64Array(space.nFlows), new Float64Array(space.nFlows)];
  for (let i = 0; i < said.length; i++) answers[(i >> 1) & 1][successors[i]] += law[i >> 2] * said[i];
  return (u) => {
    const image = new Float64Array(space.nFlows);
    const change = [0, 0];
    for (let flow = 0; flow < u.length; flow++) change[flow & 1] += share * u[flow];
    let total = 0;
    for (let i = 0; i < said.length; i++) image[successors[i]] += u[i >> 2] * Q[(i >> 1) & 1] * said[i];
    for (let flow = 0; flow < u.length; flow++) {
      image[flow] += change[0] * answers[0][flow] + change[1] * answers[1][flow];
      total += image[flow];
    }
    return image.map((value, flow) => value - total * law[flow]);
  };
}

/** Weights of agents with full memories by flow: what they keep and the word they say. */
function spokenFrom(x, q, space) {
  const kept = space.nFlows / 2;
  const law = new Float64Array(space.nFlows);
  for (let i = 0; i < 4 * kept; i++) {
    const state = space.nKept + i;
    for (let a = 0; a < 2; a++) law[2 * (i % kept) + a] += x[state] * q[2 * state + a];
  }
  return law;
}

/**
 * The largest real part of the eigenvalues of a matrix, given by its product with a Float64Array: that of its
 * restriction to Krylov spaces, which grow until `settled(now, before)` holds.
 */
function spectralAbscissa(product, size, settled) {
  let before = NaN;
  for (const most of SUBSPACES) {
    const h = krylov(product, size, Math.min(most, size));
    const now = Math.max(...hessenbergEigenvalues(h));
    if (h.length < most || settled(now, before)) return now;
    before = now;
  }
  return before;
}

/**
 * The real parts of the eigenvalues of an upper Hessenberg matrix, an array of rows: QR with Wilkinson's shifts.
 * Source: Golub and Van Loan, Matrix Computations, chapter 7.
 */
function hessenbergEigenvalues(h) {
  const re = h.map((row) => row.slice());
  const im = h.map((row) => new Float64Array(row.length));
  const values = [];
  const size = (i, j) => Math.hypot(re[i][j], im[i][j]);
  for (let end = h.length - 1, steps = 0; end >= 0; ) {
    let start = end;
    while (start > 0 && size(start, start - 1) > EPSILON * (size(start, start) + size(start - 1, start - 1))) start--;
    if (start === end) {
      values.push(re[end][end]);
      [end, steps] = [end - 1, 0];
      continue;
    }
    if (steps++ === MOST_STEPS) throw new Error("the QR algorithm did not converge");
    // An exceptional shift ends a cycle in which the usual ones can be caught.
    const shift = steps % 10 ? wilkinsonShift(re, im, end) : [re[end][end] + size(end, end - 1), im[end][end]];
    const shifted = (sign) => {
      for (let i = start; i <= end; i++) {
        re[i][i] += sign * shift[0];
        im[i][i] += sign * shift[1];
      }
    };
    shifted(-1);
    const rotations = [];
    for (let k = start; k < end; k++) {
      const length = Math.hypot(size(k, k), size(k + 1, k));
      const rotation = [re[k][k], im[k][k], re[k + 1][k], im[k + 1][k]].map((part) => (length ? part / length : 0.5));
      rotations.push(rotation);
      for (let j = k; j <= end; j++) rotate(re, im, k, j, k + 1, j, rotation, -1);
    }
    rotations.forEach((rotation, i) => {
      const k = start + i;
      for (let j = start; j <= Math.min(k + 1, end); j++) rotate(re, im, j, k, j, k + 1, rotation, 1);
    });
    shifted(1);
  }
  return values;
}

/** Two entries x and y become āx + b̄y and ay - bx, or with `sign` 1 ax + by and āy - b̄x. */
function rotate(re, im, i, j, m, n, [a, ai, b, bi], sign) {
  const [x, xi, y, yi] = [re[i][j], im[i][j], re[m][n], im[m][n]];
  [ai, bi] = [sign * ai, sign * bi];
  re[i][j] = a * x - ai * xi + b * y - bi * yi;
  im[i][j] = a * xi + ai * x + b * yi + bi * y;
  re[m][n] = a * y + ai * yi - b * x - bi * xi;
  im[m][n] = a * yi - ai * y - b * xi + bi * x;
}

/** The eigenvalue of the last two rows that is closer to the last entry. */
function wilkinsonShift(re, im, end) {
  const [x, y] = [re[end][end], im[end][end]];
  const [p, pi] = [(re[end - 1][end - 1] - x) / 2, (im[end - 1][end - 1] - y) / 2];
  const [b, bi, c, ci] = [re[end - 1][end], im[end - 1][end], re[end][end - 1], im[end][end - 1]];
  const [w, wi] = [b * c - bi * ci, b * ci + bi * c];
  const [d, di] = [p * p - pi * pi + w, 2 * p * pi + wi];
  const [root, half] = [Math.sqrt(Math.hypot(d, di)), Math.atan2(di, d) / 2];
  let [r, ri] = [root * Math.cos(half), root * Math.sin(half)];
  if (p * r + pi * ri < 0) [r, ri] = [-r, -ri];
  const [q, qi] = [p + r, pi + ri];
  const size = q * q + qi * qi;
  return size ? [x - (w * q + wi * qi) / size, y - (wi * q - w * qi) / size] : [x, y];
}

/** The matrix in an orthonormal basis of a Krylov space. */
function krylov(product, size, most) {
  const h = Array.from({ length: most }, () => new Float64Array(most));
  const basis = [];
  let next = Float64Array.from({ length: size }, (_, k) => Math.sin(1 + k * k));
  for (let [j, before] = [0, 0]; ; j++) {
    const length = Math.sqrt(dot(next, next));
    if (j === most || length <= 1e-14 * before) return h.slice(0, j).map((row) => row.slice(0, j));
    if (j > 0) h[j][j - 1] = length;
    basis.push(next.map((value) => value / length));
    next = product(basis[j]);
    before = Math.sqrt(dot(next, next));
    // Twice is enough for orthogonality to rounding.
    for (const one of [...basis.keys(), ...basis.keys()]) {
      const part = dot(basis[one], next);
      h[one][j] += part;
      for (let k = 0; k < size; k++) next[k] -= part * basis[one][k];
    }
  }
}

function dot(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}
