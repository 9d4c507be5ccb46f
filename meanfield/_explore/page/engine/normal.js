// The normal distribution function.

const SERIES_UNTIL = 2.5;

/** Φ(z), to about 15 digits of the smaller of Φ(z) and 1 - Φ(z). */
export function normalCdf(z) {
  const tail = upperTail(Math.abs(z));
  return z < 0 ? tail : 1 - tail;
}

/** 1 - Φ(z) for z ≥ 0: a power series, further out a continued fraction. */
function upperTail(z) {
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  if (z === Infinity) return 0;
  if (z < SERIES_UNTIL) {
    let term = z;
    let sum = z;
    for (let k = 3; Math.abs(term) > 1e-17 * sum; k += 2) sum += term *= (z * z) / k;
    return 0.5 - density * sum;
  }
  let fraction = 0;
  for (let k = 200; k > 0; k--) fraction = k / (z + fraction);
  return density / (z + fraction);
}
