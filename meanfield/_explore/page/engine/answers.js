// What the page asks its calculators, by kind. Questions and answers are plain data, which workers can exchange.

import { separatrices } from "./basins.js";
import { criticalMass, equilibriaTowards, equilibriumDiagram } from "./critical_mass.js";
import { driftOnLine, restingStates } from "./fixed_points.js";
import { groupSizeLaw } from "./group_size.js";
import { memorySpace } from "./memory.js";
import { makePopulation } from "./population.js";
import { solution, startComposition } from "./solution.js";

const LINE = Array.from({ length: 201 }, (_, i) => i / 200);
const FAN = [0, 1 / 8, 2 / 8, 3 / 8, 4 / 8, 5 / 8, 6 / 8, 7 / 8, 1]; // starts beside the chosen one

const ANSWERS = {
  /** Fixed points, stretches of them, and the drift along the line of word shares. */
  landscape({ q, length, committed }) {
    const population = makePopulation(memorySpace(length), q, committed);
    return { ...restingStates(population), shares: LINE, drift: driftOnLine(population, LINE) };
  },

  /** The share of word 0 over time from the chosen start and from others. */
  courses({ q, length, committed, start, times }) {
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
  law: ({ q, length }) => groupSizeLaw(q, memorySpace(length)),
};

/** The answer to a question {kind, …}, or {error} with the reason why there is none. */
export function answer(question) {
  try {
    return ANSWERS[question.kind](question);
  } catch (error) {
    return { error: error.message };
  }
}
