// Courses of vectors over time: arrays of Float64Array at the nodes of a grid, or at nodes and halfway between.

// Weights of six nodes: for the middle between the two in the middle, and for the first two middles
const STENCIL = [3, -25, 150, 150, -25, 3].map((weight) => weight / 256);
const EDGE = [
  [63, 315, -210, 126, -45, 7],
  [-7, 105, 210, -70, 21, -3],
].map((weights) => weights.map((weight) => weight / 256));

/**
 * Runge-Kutta of order four. `rate(number, y)` gets the number of half steps since the start; `held(number, y)` adjusts
 * each node in place.
 */
export function integrated(rate, start, nSteps, step, held = () => {}) {
  const course = [Float64Array.from(start)];
  for (let number = 0; number < nSteps; number++) {
    const y = course[number];
    const first = rate(2 * number, y);
    const second = rate(2 * number + 1, moved(y, step / 2, first));
    const third = rate(2 * number + 1, moved(y, step / 2, second));
    const fourth = rate(2 * number + 2, moved(y, step, third));
    const next = new Float64Array(y.length);
    for (let i = 0; i < y.length; i++) {
      next[i] = y[i] + (step / 6) * (first[i] + 2 * (second[i] + third[i]) + fourth[i]);
    }
    held(number + 1, next);
    course.push(next);
  }
  return course;
}

function moved(y, step, slope) {
  const out = new Float64Array(y.length);
  for (let i = 0; i < y.length; i++) out[i] = y[i] + step * slope[i];
  return out;
}

/** Values halfway between nodes, of order six. */
export function middlesOf(course) {
  const nSteps = course.length - 1;
  return Array.from({ length: nSteps }, (_, k) => {
    if (k < 2) return mixed(EDGE[k], course.slice(0, 6));
    if (k >= nSteps - 2) return mixed(EDGE[nSteps - 1 - k], course.slice(-6).reverse());
    return mixed(STENCIL, course.slice(k - 2, k + 4));
  });
}

function mixed(weights, vectors) {
  const sum = new Float64Array(vectors[0].length);
  weights.forEach((weight, k) => {
    const vector = vectors[k];
    for (let i = 0; i < sum.length; i++) sum[i] += weight * vector[i];
  });
  return sum;
}

/** Nodes and middles in turn. */
export function halvesOf(course) {
  const middles = middlesOf(course);
  return course.flatMap((node, k) => (k < middles.length ? [node, middles[k]] : [node]));
}

/** ∫ from each node to the last one of values at nodes and middles, by Simpson's rule. */
export function remaining(values, step) {
  const sums = [0];
  for (let k = values.length - 3; k >= 0; k -= 2) {
    sums.push(sums.at(-1) + (step / 6) * (values[k] + 4 * values[k + 1] + values[k + 2]));
  }
  return sums.reverse();
}
