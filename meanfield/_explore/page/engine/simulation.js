// The naming game agent by agent, exactly as `validation.simulate` plays it: the same seed gives the same run.

import { consensusState, keptMemory } from "./memory.js";
import { drawBits, lowerHalf, seededStream, upperHalf } from "./random.js";

const HALF = 2 ** 32;
const ROUNDS_AVERAGED = 3;
const FIRST_TEST = 4; // rounds, as in the authors' code of the group-size paper
const SUCCESS_PERCENT = 98;

/**
 * A run before its first interaction. `start` is null for empty memories, or the share of agents who remember only word
 * 0, while all others remember only word 1.
 */
export function newRun({ population, nAgents, start, seed }) {
  const { q, space, committed } = population;
  const numbers = apportioned([1 - (committed[0] + committed[1]), ...committed.filter((part) => part > 0)], nAgents);
  const firm = [0, 1].filter((word) => committed[word] > 0);
  const consensus = [consensusState(space, 0), consensusState(space, 1)];
  const shares = start === null ? { states: [0], parts: [1] } : { states: consensus, parts: [start, 1 - start] };
  const states = new Int32Array(nAgents);
  const kind = new Int8Array(nAgents).fill(-1); // the word to which an agent is committed, or -1
  let agent = 0;
  numbers.forEach((number, k) => {
    apportioned(shares.parts, number).forEach((count, i) => {
      for (let j = 0; j < count; j++, agent++) {
        states[agent] = shares.states[i];
        if (k > 0) kind[agent] = firm[k - 1];
      }
    });
  });
  return {
    space,
    q,
    nAgents,
    states,
    kind,
    kept: Int32Array.from({ length: space.nStates }, (_, state) => keptMemory(space, state)),
    limits: thresholds(q),
    stream: seededStream(seed, nAgents, 0),
    rejectFirst: HALF % nAgents,
    rejectSecond: HALF % (nAgents - 1),
    played: 0, // whole rounds
    inRound: 0, // interactions since
    agreements: [new Int32Array(2), new Int32Array(2), new Int32Array(2)], // of the last three rounds, by word
    consensus: null, // {round, word}
    history: [shareOf(states, kind, q)], // share of word 0 at the end of each round
    latest: [0, 1], // who met last
  };
}

/** Whole numbers that sum to `total`, closest to its fractions: largest remainders. */
function apportioned(fractions, total) {
  const exact = fractions.map((fraction) => fraction * total);
  const numbers = exact.map((value) => Math.floor(value + 1e-9));
  const missing = total - numbers.reduce((sum, number) => sum + number, 0);
  const order = exact.map((_, i) => i).sort((a, b) => numbers[a] - exact[a] - (numbers[b] - exact[b]) || a - b);
  order.slice(0, Math.max(0, missing)).forEach((i) => numbers[i]++);
  return numbers;
}

/**
 * P(word 0) of each state as an integer of 63 bits, in halves (high, low). The likelier word absorbs rounding, and a
 * positive probability below 2^-63 counts as 2^-63, so no possible word is lost.
 */
function thresholds(q) {
  const limits = new Uint32Array(q.length);
  for (let i = 0; i < q.length; i += 2) {
    const firstLikelier = q[i] >= q[i + 1];
    const rarer = Math.ceil((firstLikelier ? q[i + 1] : q[i]) * 2 ** 63);
    let high = Math.floor(rarer / HALF);
    let low = rarer - high * HALF;
    if (firstLikelier) {
      // 2^63 less the rarer word's number
      high = HALF / 2 - high - (low > 0 ? 1 : 0);
      low = low > 0 ? HALF - low : 0;
    }
    limits[i] = high;
    limits[i + 1] = low;
  }
  return limits;
}

/** Plays this many interactions. */
export function play(run, interactions) {
  for (let left = interactions; left > 0; left--) {
    interact(run);
    run.inRound++;
    if (run.inRound === run.nAgents) endRound(run);
  }
}

function interact(run) {
  const { stream, nAgents, states, kept, latest } = run;
  drawPair(run, stream, nAgents);
  const [i, j] = latest;
  const own = wordOf(run, i);
  const partner = wordOf(run, j);
  states[i] = 1 + 4 * kept[states[i]] + 2 * own + partner;
  states[j] = 1 + 4 * kept[states[j]] + 2 * partner + own;
  if (own === partner) run.agreements[run.played % ROUNDS_AVERAGED][own]++;
}

/**
 * An ordered pair of different agents, all equally likely; some draws are rejected where N does not divide 2^32. Source:
 * Lemire 2019, ACM Trans. Model. Comput. Simul. 29, 3.
 */
function drawPair(run, stream, nAgents) {
  for (;;) {
    drawBits(stream);
    // Below 2^53 as long as N is below 2^21
    const first = upperHalf(stream) * nAgents;
    const second = lowerHalf(stream) * (nAgents - 1);
    const i = Math.floor(first / HALF);
    const j = Math.floor(second / HALF);
    if (first - i * HALF >= run.rejectFirst && second - j * HALF >= run.rejectSecond) {
      run.latest[0] = i;
      run.latest[1] = j >= i ? j + 1 : j;
      return;
    }
  }
}

function wordOf(run, agent) {
  const { stream, limits, states, kind } = run;
  drawBits(stream);
  if (kind[agent] >= 0) return kind[agent];
  const bits = upperHalf(stream);
  const high = bits >>> 1;
  const low = ((bits << 31) | (lowerHalf(stream) >>> 1)) >>> 0;
  const place = 2 * states[agent];
  return high > limits[place] || (high === limits[place] && low >= limits[place + 1]) ? 1 : 0;
}

function endRound(run) {
  run.inRound = 0;
  run.played++;
  run.history.push(shareOf(run.states, run.kind, run.q));
  const needed = Math.ceil((SUCCESS_PERCENT * ROUNDS_AVERAGED * run.nAgents) / 100);
  const agreed = [0, 1].map((word) => run.agreements.reduce((sum, counts) => sum + counts[word], 0));
  if (!run.consensus && run.played >= FIRST_TEST && agreed[0] + agreed[1] >= needed) {
    const first = agreed[0] > agreed[1] || (agreed[0] === agreed[1] && run.history.at(-1) >= 0.5);
    run.consensus = { round: run.played, word: first ? 0 : 1 };
  }
  run.agreements[run.played % ROUNDS_AVERAGED].fill(0);
}

/** The probability that a random agent says word 0. */
function shareOf(states, kind, q) {
  let sum = 0;
  for (let agent = 0; agent < states.length; agent++) {
    sum += kind[agent] >= 0 ? 1 - kind[agent] : q[2 * states[agent]];
  }
  return sum / states.length;
}

/** The word that an agent said last, or -1 before its first. */
export function lastWord(state) {
  return state === 0 ? -1 : ((state - 1) >> 1) & 1;
}
