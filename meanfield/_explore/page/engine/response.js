// The response F(Q): what a population says whose agents have long heard the word share Q. It follows from stationary
// distributions of the chain of flows, by iterative aggregation and disaggregation.
//
// All operations are sums of positive terms, so that entries have full relative accuracy however small they are.

import { closedClasses, flowSuccessors, saidNext } from "./flows.js";

const ELIMINATED_FLOWS = 64; // up to here elimination on all flows is faster than iteration
const FEWEST_CYCLES = 8;
const TOLERANCE = 1e-13;
const LEAKS = [1e-3, 1e-6, 1e-9, 1e-12];
const NOTHING = 1e-290;
const LARGE = 1e10;
const SLOWEST = 0.95; // a factor between changes from cycle to cycle that is nearer to 1 may hide a slower one

/** (Q_0, Q_1) at logit Q, each to full relative accuracy. */
export function wordShares(logit) {
  return [1 / (1 + Math.exp(-logit)), 1 / (1 + Math.exp(logit))];
}

/** The responses of a population, one for each closed class of memories. */
export function responses(population) {
  const { q, space } = population;
  return closedClasses(q, space).map((flows) => responseOn(chainOf(q, space, flows), population));
}

function responseOn(chain, { share, committed }) {
  const uncommitted = (Q, tolerance) => saidBy(stationary(chain, Q, tolerance));
  return {
    /** What the agents say who are not committed. */
    uncommitted,
    /** F(Q), what all say. */
    said(Q, tolerance) {
      const free = uncommitted(Q, tolerance);
      return [share * free[0] + committed[0], share * free[1] + committed[1]];
    },
    /** The stationary distribution p(Q) over all states. */
    composition(Q) {
      const x = new Float64Array(chain.space.nStates);
      stationary(chain, Q).forEach((weight, flow) => x.set([weight * Q[0], weight * Q[1]], chain.space.nKept + 2 * flow));
      return x;
    },
  };
}

/** What does not depend on the word share: agents with the probabilities q on one closed class of flows. */
function chainOf(q, space, members) {
  const label = members.length > ELIMINATED_FLOWS ? ownWords(q, space) : null;
  return { space, members, said: saidNext(q, space), successors: flowSuccessors(space), label };
}

/** The stationary distribution of flows when partners say word 0 and 1 with the probabilities `heard`. */
function stationary(chain, heard, tolerance = TOLERANCE) {
  if (chain.label === null) return eliminated(chain, heard);
  return iterated(chain, heard, tolerance) ?? eliminated(chain, heard);
}

/** What agents say, [P(word 0), P(word 1)], from their distribution of flows. */
function saidBy(law) {
  const said = [everySecond(law, 0, law.length), everySecond(law, 1, law.length)];
  return said.map((one) => one / (said[0] + said[1]));
}

/** The sum of every second number, in pairs of sums, with fewer rounding errors than term after term. */
function everySecond(law, first, end) {
  let sum = 0;
  if (end - first > 64) {
    const middle = first + 2 * Math.floor((end - first) / 4);
    return everySecond(law, first, middle) + everySecond(law, middle, end);
  }
  for (let flow = first; flow < end; flow += 2) sum += law[flow];
  return sum;
}

/** The distribution of flows by elimination on all flows of the class. */
function eliminated(chain, heard) {
  const { said, successors, members } = chain;
  const n = members.length;
  const place = new Int32Array(successors.length / 4);
  members.forEach((flow, k) => (place[flow] = k));
  const matrix = new Float64Array(n * n);
  members.forEach((flow, k) => {
    for (let i = 0; i < 4; i++) {
      const probability = heard[i >> 1] * said[4 * flow + i];
      if (probability > 0) matrix[k * n + place[successors[4 * flow + i]]] += probability;
    }
  });
  const weights = new Float64Array(n);
  eliminate(matrix, weights, 0);
  const law = new Float64Array(place.length);
  members.forEach((flow, k) => (law[flow] = weights[k]));
  return law;
}

/**
 * Writes the stationary distribution of a chain (n, n), which is overwritten. Diagonals are not read: a state is left at the sum
 * of the other entries of its row. Source: Grassmann, Taksar and Heyman, Operations Research 33, 1107 (1985).
 */
function eliminate(chain, law, first) {
  const n = law.length;
  for (let k = n - 1; k > 0; k--) {
    let leaves = NOTHING;
    for (let j = 0; j < k; j++) leaves += chain[k * n + j];
    for (let i = 0; i < k; i++) {
      if (!(chain[i * n + k] > 0)) continue;
      const ratio = (chain[i * n + k] /= leaves);
      for (let j = 0; j < k; j++) chain[i * n + j] += ratio * chain[k * n + j];
    }
  }
  let total = 0;
  for (let k = 0; k < n; k++) {
    let weight = k === first ? 1 : 0;
    for (let i = 0; i < k; i++) weight += law[i] * chain[i * n + k];
    law[k] = weight;
    total += weight;
    if (total > LARGE) {
      for (let i = 0; i <= k; i++) law[i] /= total;
      total = 1;
    }
  }
  for (let k = 0; k < n; k++) law[k] /= total;
}

/** The distribution of flows by cycles of `balance` and `sweep`, or null if they take longer than elimination. */
function iterated(chain, heard, tolerance) {
  const { members, label } = chain;
  const nFlows = label.length;
  const law = new Float64Array(nFlows);
  for (const flow of members) law[flow] = 1 / members.length;
  const n = Math.max(...label) + 1;
  const work = { chain: new Float64Array(n * n), weight: new Float64Array(n), inside: new Float64Array(n) };
  const before = new Float64Array(nFlows);
  const next = new Float64Array(nFlows);
  const share = [Infinity, Infinity];
  const maxCycles = FEWEST_CYCLES + Math.floor(members.length / 16);
  let change = Infinity;
  for (let cycle = 0; cycle < maxCycles; cycle++) {
    before.set(law);
    balance(chain, law, heard, work);
    sweep(chain, law, heard, next);
    const last = change;
    change = changeOf(law, before, share);
    const slowness = last > 0 && last < Infinity ? Math.min(SLOWEST, change / last) : 0;
    if (change * Math.max(1, slowness / (1 - slowness)) <= tolerance) return law;
  }
  return null;
}

/** Rescales the weight of each aggregate to the stationary distribution of the chain between aggregates that `law` implies. */
function balance({ said, successors, label }, law, heard, work) {
  const { chain, weight, inside } = work;
  const n = weight.length;
  chain.fill(0);
  inside.fill(0);
  for (let flow = 0; flow < law.length; flow++) inside[label[flow]] += law[flow];
  for (let flow = 0; flow < law.length; flow++) {
    if (!(law[flow] > 0)) continue;
    const row = n * label[flow];
    const part = law[flow] / inside[label[flow]];
    for (let i = 4 * flow; i < 4 * flow + 4; i++) {
      chain[row + label[successors[i]]] += part * heard[(i >> 1) & 1] * said[i];
    }
  }
  let first = 0;
  while (inside[first] === 0) first++;
  eliminate(chain, weight, first);
  for (let flow = 0; flow < law.length; flow++) {
    if (law[flow] > 0) law[flow] *= weight[label[flow]] / inside[label[flow]];
  }
}

/** H interactions one after another, after which everything that was heard is forgotten. */
function sweep({ said, space }, law, heard, next) {
  const quarter = law.length / 4;
  for (let step = 0; step < space.length; step++) {
    let total = 0;
    // With H = 1 a flow is the word just said, and there is no oldest interaction to sum over.
    for (let j = 0; j < quarter; j++) {
      for (let b = 0; b < 2; b++) {
        for (let a = 0; a < 2; a++) {
          let weight = 0;
          for (let flow = j; flow < law.length; flow += quarter) weight += law[flow] * said[4 * flow + 2 * b + a];
          weight *= heard[b];
          next[2 * (2 * j + b) + a] = weight;
          total += weight;
        }
      }
    }
    for (let flow = 0; flow < law.length; flow++) law[flow] = next[flow] / total;
  }
}

/** The larger of the largest relative change of the word share, which is written to `share`, and Σ|δ law|. */
function changeOf(law, before, share) {
  let change = 0;
  for (let flow = 0; flow < law.length; flow++) change += Math.abs(law[flow] - before[flow]);
  saidBy(law).forEach((said, word) => {
    const moved = Math.abs(said - share[word]);
    change = Math.max(change, said > 0 ? moved / said : moved);
    share[word] = said;
  });
  return change;
}

/** A label for each flow: the own words it remembers, and the sets that agents leave only by rare answers. */
function ownWords(q, space) {
  let label = Array.from({ length: space.nFlows }, (_, flow) => {
    let own = flow & 1;
    for (let k = 0, kept = flow >> 1; k < space.length - 1; k++, kept >>= 2) own = 2 * own + ((kept >> 1) & 1);
    return own;
  });
  for (const leak of LEAKS) {
    const classes = closedClasses(q, space, leak);
    const apart = classes.reduce((sum, flows) => sum + new Set(flows.map((flow) => label[flow])).size, 0);
    if (apart === new Set(classes.flat().map((flow) => label[flow])).size) continue; // own words tell these sets apart
    label = label.map((own) => own * (space.nFlows + 1));
    classes.forEach((flows, number) => flows.forEach((flow) => (label[flow] += number + 1)));
    const distinct = [...new Set(label)].sort((a, b) => a - b);
    const numbers = new Map(distinct.map((value, number) => [value, number]));
    label = label.map((value) => numbers.get(value));
  }
  return Int32Array.from(label);
}
