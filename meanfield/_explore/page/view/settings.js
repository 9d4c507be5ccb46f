// The settings of a view. All of them stand in the address, so that a view can be shared.

import { atTemperature, makePopulation } from "../engine/policy.js";

export const SIZES = [
  2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 36, 40, 50, 60, 70, 80, 90, 100, 120, 150, 200, 250, 300, 400, 500,
  600, 800, 1000, 1200, 1500, 2000, 3000, 5000,
];
export const SPEEDS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]; // rounds a second
export const ROUNDS = [20, 50, 100, 200, 500, 1000];
const OCTAVE = 32; // steps of the temperature slider in which the temperature doubles
const LARGEST_SEED = Number.MAX_SAFE_INTEGER;

// The name in the address, what is valid, and the setting where the address has none
const KNOWN = {
  policy: { from: 0, to: (policies) => policies.length - 1, initial: 0 },
  temperature: { from: -64, to: () => 64, initial: 0 },
  agents: { values: SIZES, initial: 100 },
  committed0: { from: 0, to: () => 450, initial: 0 }, // thousandths
  committed1: { from: 0, to: () => 450, initial: 0 },
  start: { from: -1, to: () => 100, initial: -1 }, // per cent who remember only word 0; -1 is empty memories
  seed: { from: 0, to: () => LARGEST_SEED, initial: 1 },
  speed: { values: SPEEDS, initial: 5 },
  rounds: { values: ROUNDS, initial: 100 },
  picture: { from: 0, to: () => 1, initial: 1 }, // word of the committed agents in the diagram
  memory: { from: 0, to: (policies, policy) => policies[policy].space.nStates - 1, initial: 0 },
};

/** The settings in an address such as '#policy=3&agents=24'; what is missing or wrong there is as at first. */
export function settingsFrom(hash, policies) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const settings = {};
  for (const [name, { from, to, values, initial }] of Object.entries(KNOWN)) {
    const number = given.has(name) ? Number(given.get(name)) : NaN;
    const valid = values
      ? values.includes(number)
      : Number.isInteger(number) && number >= from && number <= to(policies, settings.policy);
    settings[name] = valid ? number : initial;
  }
  return settings;
}

/** The address of these settings. */
export function hashOf(settings) {
  return `#${new URLSearchParams(Object.entries(settings).map(([name, value]) => [name, String(value)]))}`;
}

export function validSeed(text) {
  const seed = Number(text);
  return text.trim() !== "" && Number.isInteger(seed) && seed >= 0 && seed <= LARGEST_SEED ? seed : null;
}

/** The temperature, in units of the measured one where no log-probabilities were measured. */
export function temperatureOf(settings, policy) {
  return policy.temperature * 2 ** (settings.temperature / OCTAVE);
}

export function startOf(settings) {
  return settings.start < 0 ? null : settings.start / 100;
}

/** The population that these settings describe. */
export function populationOf(settings, policy) {
  const q = atTemperature(policy, temperatureOf(settings, policy));
  return makePopulation(policy.space, q, [settings.committed0 / 1000, settings.committed1 / 1000]);
}
