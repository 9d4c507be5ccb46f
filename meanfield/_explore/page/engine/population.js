// A population: agents of one policy and agents committed to a word.

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
