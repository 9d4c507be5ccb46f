// Eigenvalues of small matrices, and leading eigenvalues of large ones that are given by their products with vectors.

const MOST_STEPS = 90; // of the QR algorithm, for one eigenvalue
const SUBSPACES = [40, 80, 160, 320];
const SAME = 1e-13;
const EPSILON = 2 ** -52;

/**
 * Scales rows and columns of a matrix, in place and by powers of 2, until they are about as long as each other: its
 * eigenvalues stay, and rounding moves them less. Source: Parlett and Reinsch, Numerische Mathematik 13, 293 (1969).
 */
export function balanced(a) {
  for (let settled = false; !settled; ) {
    settled = true;
    for (let i = 0; i < a.length; i++) {
      let [row, column] = [0, 0];
      for (let j = 0; j < a.length; j++) {
        if (j === i) continue;
        row += Math.abs(a[i][j]);
        column += Math.abs(a[j][i]);
      }
      if (row === 0 || column === 0) continue;
      const scale = 2 ** Math.round(Math.log2(row / column) / 2);
      if (column * scale + row / scale >= 0.95 * (column + row)) continue;
      settled = false;
      for (let j = 0; j < a.length; j++) {
        a[i][j] /= scale;
        a[j][i] *= scale;
      }
    }
  }
  return a;
}

/**
 * Eigenvalues [real, imaginary] of an upper Hessenberg matrix, an array of rows that is overwritten: QR with double
 * shifts. Source: Martin, Peters and Wilkinson, Numerische Mathematik 14, 219 (1970), algorithm hqr.
 */
export function hessenbergEigenvalues(a) {
  const values = new Array(a.length);
  let size = 0;
  a.forEach((row, i) => row.forEach((value, j) => (size += j >= i - 1 ? Math.abs(value) : 0)));
  let end = a.length - 1;
  let shifted = 0;
  let steps = 0;
  while (end >= 0) {
    const start = lastSplit(a, end, size);
    const x = a[end][end];
    if (start === end) {
      values[end] = [x + shifted, 0];
      end -= 1;
      steps = 0;
    } else if (start === end - 1) {
      [values[end - 1], values[end]] = pairOfEigenvalues(a, end, shifted);
      end -= 2;
      steps = 0;
    } else {
      if (steps === MOST_STEPS) throw new Error("the QR algorithm did not converge");
      let shift = { x, y: a[end - 1][end - 1], w: a[end][end - 1] * a[end - 1][end] };
      if (steps % 10 === 0 && steps > 0) {
        // An exceptional shift ends a cycle in which the usual ones can be caught.
        shifted += x;
        for (let i = 0; i <= end; i++) a[i][i] -= x;
        const s = Math.abs(a[end][end - 1]) + Math.abs(a[end - 1][end - 2]);
        shift = { x: 0.75 * s, y: 0.75 * s, w: -0.4375 * s * s };
      }
      steps += 1;
      doubleShift(a, start, end, shift);
    }
  }
  return values;
}

/** The first row of the last block that is coupled to row `end`; a negligible coupling is set to 0. */
function lastSplit(a, end, size) {
  for (let l = end; l > 0; l--) {
    const s = Math.abs(a[l - 1][l - 1]) + Math.abs(a[l][l]) || size;
    if (Math.abs(a[l][l - 1]) + s === s) {
      a[l][l - 1] = 0;
      return l;
    }
  }
  return 0;
}

function pairOfEigenvalues(a, end, shifted) {
  const x = a[end][end];
  const w = a[end][end - 1] * a[end - 1][end];
  const p = (a[end - 1][end - 1] - x) / 2;
  const q = p * p + w;
  const z = Math.sqrt(Math.abs(q));
  if (q < 0) return [[x + p + shifted, z], [x + p + shifted, -z]];
  const far = p + (p >= 0 ? z : -z);
  return [[x + far + shifted, 0], [(far ? x - w / far : x + far) + shifted, 0]];
}

function doubleShift(a, start, end, { x, y, w }) {
  let p, q, r;
  let m = end - 2;
  for (; m >= start; m--) {
    const z = a[m][m];
    p = ((x - z) * (y - z) - w) / a[m + 1][m] + a[m][m + 1];
    q = a[m + 1][m + 1] - z - (x - z) - (y - z);
    r = a[m + 2][m + 1];
    const s = Math.abs(p) + Math.abs(q) + Math.abs(r);
    [p, q, r] = [p / s, q / s, r / s];
    if (m === start) break;
    const u = Math.abs(a[m][m - 1]) * (Math.abs(q) + Math.abs(r));
    const v = Math.abs(p) * (Math.abs(a[m - 1][m - 1]) + Math.abs(z) + Math.abs(a[m + 1][m + 1]));
    if (u + v === v) break;
  }
  for (let i = m + 2; i <= end; i++) {
    a[i][i - 2] = 0;
    if (i > m + 2) a[i][i - 3] = 0;
  }
  for (let k = m; k < end; k++) {
    const three = k < end - 1;
    let scale = 1;
    if (k > m) {
      p = a[k][k - 1];
      q = a[k + 1][k - 1];
      r = three ? a[k + 2][k - 1] : 0;
      scale = Math.abs(p) + Math.abs(q) + Math.abs(r);
      if (scale === 0) continue;
      [p, q, r] = [p / scale, q / scale, r / scale];
    }
    const length = Math.sqrt(p * p + q * q + r * r);
    const s = p >= 0 ? length : -length;
    if (s === 0) continue;
    if (k > m) a[k][k - 1] = -s * scale;
    else if (start !== m) a[k][k - 1] = -a[k][k - 1];
    p += s;
    const [u, v, t] = [p / s, q / s, r / s];
    q /= p;
    r /= p;
    for (let j = k; j < a.length; j++) {
      let sum = a[k][j] + q * a[k + 1][j];
      if (three) {
        sum += r * a[k + 2][j];
        a[k + 2][j] -= sum * t;
      }
      a[k + 1][j] -= sum * v;
      a[k][j] -= sum * u;
    }
    const last = Math.min(end, k + 3);
    for (let i = 0; i <= last; i++) {
      let sum = u * a[i][k] + v * a[i][k + 1];
      if (three) {
        sum += t * a[i][k + 2];
        a[i][k + 2] -= sum * r;
      }
      a[i][k + 1] -= sum * q;
      a[i][k] -= sum;
    }
  }
}

/**
 * The `count` eigenvalues with the largest real parts, [real, imaginary], and the eigenvector of the first if it is
 * real: Arnoldi iteration in subspaces that grow until `settled(now, before)` holds for each. `product` maps a
 * Float64Array to its image.
 */
export function leadingEigenvalues(product, size, count = 1, settled = agree) {
  let before = [];
  for (const most of SUBSPACES) {
    const { basis, h } = krylov(product, size, Math.min(most, size));
    const n = h.length;
    const values = hessenbergEigenvalues(h.map((row) => row.slice()));
    values.sort((a, b) => b[0] - a[0] || b[1] - a[1]);
    const found = values.slice(0, count);
    const same = found.every((value, k) => before[k] && settled(value, before[k]));
    if (same || n < most || most === SUBSPACES.at(-1)) {
      return { values: found, vector: found[0][1] === 0 ? combined(basis, eigenvector(h, found[0][0])) : null };
    }
    before = found;
  }
}

function agree(now, before) {
  return Math.hypot(now[0] - before[0], now[1] - before[1]) < SAME;
}

/** An orthonormal basis of the Krylov space, and the matrix in it. */
function krylov(product, size, most) {
  let vector = normalised(pseudoRandom(size)).vector;
  const basis = [];
  const h = [];
  for (let j = 0; j < most; j++) {
    basis.push(vector);
    let image = product(vector);
    const column = new Array(j + 1).fill(0);
    const before = norm(image);
    // Twice is enough for orthogonality to rounding.
    for (let pass = 0; pass < 2; pass++) {
      basis.forEach((one, i) => {
        const part = dot(one, image);
        column[i] += part;
        for (let k = 0; k < size; k++) image[k] -= part * one[k];
      });
    }
    const next = normalised(image);
    column.forEach((value, i) => (h[i] ??= [])[j] = value);
    if (j + 1 === most || next.length <= 1e-14 * before) break;
    (h[j + 1] ??= [])[j] = next.length;
    vector = next.vector;
  }
  const n = basis.length;
  return { basis, h: h.slice(0, n).map((row) => Array.from({ length: n }, (_, j) => row[j] ?? 0)) };
}

/** The eigenvector of a Hessenberg matrix for a real eigenvalue, by inverse iteration. */
function eigenvector(h, value) {
  const shift = value + 4 * EPSILON * Math.max(1, Math.abs(value));
  let y = new Array(h.length).fill(1);
  for (let pass = 0; pass < 3; pass++) {
    y = solved(h.map((row, i) => row.map((entry, j) => (i === j ? entry - shift : entry))), y);
    const size = Math.hypot(...y);
    y = y.map((entry) => entry / size);
  }
  return y;
}

/** The solution of a linear system given by rows, by elimination with pivots; the rows are overwritten. */
function solved(rows, right) {
  const n = rows.length;
  const y = Array.from(right);
  for (let k = 0; k < n; k++) {
    let pivot = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(rows[i][k]) > Math.abs(rows[pivot][k])) pivot = i;
    [rows[k], rows[pivot]] = [rows[pivot], rows[k]];
    [y[k], y[pivot]] = [y[pivot], y[k]];
    if (rows[k][k] === 0) rows[k][k] = Number.MIN_VALUE / EPSILON;
    for (let i = k + 1; i < n; i++) {
      const factor = rows[i][k] / rows[k][k];
      if (factor === 0) continue;
      for (let j = k; j < n; j++) rows[i][j] -= factor * rows[k][j];
      y[i] -= factor * y[k];
    }
  }
  for (let k = n - 1; k >= 0; k--) {
    for (let j = k + 1; j < n; j++) y[k] -= rows[k][j] * y[j];
    y[k] /= rows[k][k];
  }
  return y;
}

function combined(basis, weights) {
  const sum = new Float64Array(basis[0].length);
  basis.forEach((one, i) => one.forEach((value, k) => (sum[k] += weights[i] * value)));
  return sum;
}

function dot(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

function norm(a) {
  return Math.sqrt(dot(a, a));
}

function normalised(a) {
  const length = norm(a);
  return { length, vector: a.map((value) => value / length) };
}

/** The same numbers between -1 and 1 each time. */
function pseudoRandom(size) {
  let state = 1;
  return Float64Array.from({ length: size }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return state / 2 ** 31;
  });
}
