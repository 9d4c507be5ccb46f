// Linear equations given by products: GMRES without restarts.

import { dotProduct } from "./path_equations.js";

/** The solution of A x = b in a Krylov space of at most `most` dimensions, to a relative residual of `tolerance`. */
export function krylovSolution(product, b, tolerance, most) {
  const size = Math.sqrt(dotProduct(b, b));
  if (size === 0) return b.map(() => 0);
  const basis = [b.map((value) => value / size)];
  const columns = []; // of the triangle that rotations make of the Hessenberg matrix
  const rotations = [];
  const right = [size];
  for (let j = 0; j < most && Math.abs(right[j]) > tolerance * size; j++) {
    const image = product(basis[j]);
    const column = basis.map((one) => {
      const part = dotProduct(one, image);
      for (let i = 0; i < image.length; i++) image[i] -= part * one[i];
      return part;
    });
    const next = Math.sqrt(dotProduct(image, image));
    rotations.forEach(([c, s], i) => {
      [column[i], column[i + 1]] = [c * column[i] + s * column[i + 1], c * column[i + 1] - s * column[i]];
    });
    const length = Math.hypot(column[j], next);
    const [c, s] = [column[j] / length, next / length];
    rotations.push([c, s]);
    column[j] = length;
    columns.push(column);
    right.push(-s * right[j]);
    right[j] *= c;
    if (!(next > 1e-14 * size)) break;
    basis.push(image.map((value) => value / next));
  }
  return combinedBasis(basis, columns, right);
}

function combinedBasis(basis, columns, right) {
  const weights = right.slice(0, columns.length);
  for (let k = columns.length - 1; k >= 0; k--) {
    for (let j = k + 1; j < columns.length; j++) weights[k] -= columns[j][k] * weights[j];
    weights[k] /= columns[k][k];
  }
  const x = new Float64Array(basis[0].length);
  weights.forEach((weight, k) => basis[k].forEach((value, i) => (x[i] += weight * value)));
  return x;
}
