// Policies as the page carries them, and what a temperature makes of them.

import { memorySpace } from "./memory.js";

/** Little-endian float64 from base64. */
export function decodedNumbers(text) {
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float64Array.from({ length: bytes.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

/**
 * A policy from its entry in the page: q has P(word 0) and P(word 1) of each state in turn. `logOdds`, if measured, has
 * log P(word 0) / P(word 1) at temperature 1 of each state, for each order in which the prompt presented the words.
 */
export function decodedPolicy(entry) {
  return {
    words: entry.words,
    space: memorySpace(entry.memory_length),
    q: decodedNumbers(entry.q),
    logOdds: entry.log_odds.map(decodedNumbers),
    temperature: entry.temperature,
  };
}

/**
 * The policy at a temperature.
 *
 * From the measured log-odds it is what the model would say, averaged over the orders. Without them the probabilities
 * are taken to the power measured temperature / temperature and normalised again.
 */
export function atTemperature(policy, temperature) {
  if (temperature === policy.temperature) return policy.q;
  return policy.logOdds.length ? fromLogOdds(policy.logOdds, temperature) : sharpened(policy, temperature);
}

function fromLogOdds(orders, temperature) {
  const q = new Float64Array(2 * orders[0].length);
  for (const logOdds of orders) {
    logOdds.forEach((odds, state) => {
      const rarer = Math.exp(-Math.abs(odds) / temperature);
      const likelier = odds >= 0 ? 0 : 1;
      q[2 * state + likelier] += 1 / (1 + rarer);
      q[2 * state + 1 - likelier] += rarer / (1 + rarer);
    });
  }
  return q.map((sum) => sum / orders.length);
}

function sharpened(policy, temperature) {
  const q = policy.q.slice();
  const power = policy.temperature / temperature;
  for (let i = 0; i < q.length; i += 2) {
    const likelier = q[i] >= q[i + 1] ? i : i + 1;
    const other = likelier === i ? i + 1 : i;
    const rarer = Math.pow(q[other] / q[likelier], power);
    q[likelier] = 1 / (1 + rarer);
    q[other] = rarer / (1 + rarer);
  }
  return q;
}
