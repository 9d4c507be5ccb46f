// What the page asks its calculators, by kind. Questions and answers are plain data, which workers can exchange.

import { separatrices } from "./basins.js";
import { criticalMass, equilibriaTowards, equilibriumDiagram } from "./critical_mass.js";
import { driftOnLine, fixedPoints, restingStates } from "./fixed_points.js";
import { memorySpace } from "./memory.js";
import { makePopulation } from "./policy.js";
import { solution, startComposition } from "./solution.js";

const LINE = Array.from({ length: 201 }, (_, i) => i / 200);
const FAN = [0, 1 / 8, 2 / 8, 3 / 8, 4 / 8, 5 / 8, 6 / 8, 7 / 8, 1]; // starts beside the chosen one
const SURE = 2.3263478740408408; // Φ⁻¹(99 %)

const ANSWERS = {
  /** Fixed points, stretches of them, and the drift along the line of word shares. */
  landscape({ q, length, committed }) {
    const population = makePopulation(memorySpace(length), q, committed);
    return { ...restingStates(population), shares: LINE, drift: driftOnLine(population, LINE) };
  },

  /** The share of word 0 over time from the chosen start and from others. */
  trajectories({ q, length, committed, start, times }) {
    const population = makePopulation(memorySpace(length), q, committed);
    const from = (one) => solution(population, startComposition(population.space, one), times).shares;
    return { times, chosen: from(start), fan: FAN.map(from) };
  },

  /** The starts at which the attractor changes, and whether some end at states that neither attract nor repel. */
  basins: ({ q, length, committed }) => separatrices(makePopulation(memorySpace(length), q, committed)),

  /** The critical masses of both words, each beside the present agents committed to the other. */
  masses({ q, length, committed, word }) {
    const population = makePopulation(memorySpace(length), q, committed);
    const equilibria = [0, 1].map((one) => equilibriaTowards(population, one));
    return { masses: equilibria.map(criticalMass), stretches: equilibriumDiagram(equilibria[word]) };
  },

  /** The group-size law, which knows no committed agents. */
  law: ({ q, length, kappa }) => groupSizeLaw(q, memorySpace(length), kappa),
};

/** The answer to a question {kind, …}, or {error} with the reason why there is none. */
export function answer(question) {
  try {
    return ANSWERS[question.kind](question);
  } catch (error) {
    return { error: error.message };
  }
}

/**
 * {kappa, critical, strong, reason} of agents with the probabilities q and no committed ones: κ, the size of groups that
 * end at the strong word with a probability of 99 %, that word (null if it is mixed), and why there is no κ, '' if there
 * is. `tabulated` is κ from Python, above 0 if the attractor with more of word 0 is strong, or why there is none.
 */
function groupSizeLaw(q, space, tabulated) {
  const points = fixedPoints(makePopulation(space, q));
  const none = (reason) => ({ kappa: NaN, critical: NaN, strong: null, reason });
  if (points.map((point) => point.status).join() !== "stable,unstable,stable") return none(objection(points));
  const kappa = Number(tabulated ?? NaN);
  if (Number.isNaN(kappa)) return none(tabulated ?? "κ was not computed at this temperature");
  const { convention } = points[kappa > 0 ? 0 : 2];
  return { kappa: Math.abs(kappa), critical: (SURE / kappa) ** 2, strong: convention, reason: "" };
}

/** Why a landscape has no law: it does not consist of two attractors with one saddle between them. */
function objection(points) {
  const attractors = points.filter((point) => point.status === "stable").length;
  if (points.some((point) => point.status === "marginal")) return "a resting point neither attracts nor repels";
  if (attractors === 1) return "only one state attracts, and groups of every size drift to it";
  if (attractors === 0) return "no state of the population lasts";
  return "there are more than two states in which a population can rest";
}
