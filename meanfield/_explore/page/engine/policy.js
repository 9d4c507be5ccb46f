// Policies as the page carries them, what a temperature makes of them, and populations of their agents.

import { memorySpace } from "./memory.js";

/** Little-endian float64 from base64. */
function decodedNumbers(text) {
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float64Array.from({ length: bytes.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

/**
 * A policy from its entry in the page: q has P(word 0) and P(word 1) of each state in turn. `logOdds`, if measured, has
 * log P(word 0) / P(word 1) at temperature 1 of each state, for each order in which the prompt presented the words.
 * `kappas` are κ at each step of the temperature slider (see answers.js).
 */
export function decodedPolicy({ words, memory_length: length, q, log_odds: logOdds, temperature, kappas }) {
  const decoded = { q: decodedNumbers(q), logOdds: logOdds.map(decodedNumbers) };
  return { words, space: memorySpace(length), ...decoded, temperature, kappas };
}

/**
 * The policy at a temperature.
 *
 * From the measured log-odds it is what the model would say, averaged over the orders. Without them the probabilities
 * are taken to the power measured temperature / temperature and normalised again.
 */
export function atTemperature({ q: measured, logOdds, temperature: before }, temperature) {
  if (temperature === before) return measured;
  const given = (state) => before * Math.log(measured[2 * state] / measured[2 * state + 1]);
  const orders = logOdds.length ? logOdds : [Float64Array.from({ length: measured.length / 2 }, (_, i) => given(i))];
  const q = new Float64Array(measured.length);
  for (const one of orders) {
    one.forEach((odds, state) => {
      const rarer = Math.exp(-Math.abs(odds) / temperature);
      const likelier = odds >= 0 ? 0 : 1;
      q[2 * state + likelier] += 1 / (1 + rarer);
      q[2 * state + 1 - likelier] += rarer / (1 + rarer);
    });
  }
  return q.map((sum) => sum / orders.length);
}

/** Agents with the probabilities q, and the committed fractions of word 0 and word 1 among all agents. */
export function makePopulation(space, q, committed = [0, 0]) {
  return { space, q, committed, share: 1 - (committed[0] + committed[1]) };
}

/** The same population with this fraction of all agents committed to `word`. */
export function withCommitted(population, word, fraction) {
  const committed = population.committed.slice();
  committed[word] = fraction;
  return makePopulation(population.space, population.q, committed);
}
