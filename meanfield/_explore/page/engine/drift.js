// The right-hand side of the rate equation, dx/dt = A(Q)ᵀx - x.

/** Writes dx/dt of the uncommitted agents and returns max|dx/dt|; `work` holds 2 numbers for each kept memory. */
export function drift({ q, space, share, committed }, x, slope, work) {
  const { nKept, longest, nStates } = space;
  let [first, second] = [0, 0];
  for (let i = 0; i < nStates; i++) {
    first += x[i] * q[2 * i];
    second += x[i] * q[2 * i + 1];
  }
  const total = first + second;
  const Q0 = committed[0] + (share * first) / total;
  const Q1 = committed[1] + (share * second) / total;
  for (let k = 0; k < nKept; k++) {
    work[2 * k] = x[k] * q[2 * k];
    work[2 * k + 1] = x[k] * q[2 * k + 1];
  }
  for (let i = nKept, k = longest; i < nStates; i++) {
    work[2 * k] += x[i] * q[2 * i];
    work[2 * k + 1] += x[i] * q[2 * i + 1];
    k = k + 1 === nKept ? longest : k + 1;
  }
  slope[0] = -x[0];
  let largest = Math.abs(slope[0]);
  for (let k = 0; k < 2 * nKept; k++) {
    const i = 1 + 2 * k;
    slope[i] = work[k] * Q0 - x[i];
    slope[i + 1] = work[k] * Q1 - x[i + 1];
    largest = Math.max(largest, Math.abs(slope[i]), Math.abs(slope[i + 1]));
  }
  return largest;
}

/** Σ_i x_i q_w(i) for both words. */
export function saidIn(q, x) {
  const said = [0, 0];
  for (let i = 0; i < x.length; i++) {
    said[0] += x[i] * q[2 * i];
    said[1] += x[i] * q[2 * i + 1];
  }
  return said;
}
