// Courses of vectors over time: arrays of Float64Array at the nodes of a grid, or at nodes and halfway between.

// Weights of six nodes: for the middle between the two in the middle, and for the first two middles
const STENCIL = [3, -25, 150, 150, -25, 3].map((weight) => weight / 256);
const EDGE = [
  [63, 315, -210, 126, -45, 7],
  [-7, 105, 210, -70, 21, -3],
].map((weights) => weights.map((weight) => weight / 256));

/** Values halfway between nodes, of order six. */
function middlesOf(course) {
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
