// Memories of two words, numbered as in Python's MemorySpace: by length, then by digits 2·own + partner, oldest first.

/** The space of all memories of up to `length` interactions. */
export function memorySpace(length) {
  const offset = (h) => (4 ** h - 1) / 3; // the first state that remembers h interactions
  return {
    length,
    nStates: offset(length + 1),
    nKept: offset(length), // memories of less than `length` interactions, which are what agents keep
    longest: offset(length - 1), // where the longest of these begin
    nFlows: 2 * 4 ** (length - 1),
  };
}

/** The memory that an agent in `state` keeps when it meets the next partner: a full one loses its oldest interaction. */
export function keptMemory(space, state) {
  if (state < space.nKept) return state;
  return space.longest + ((state - space.nKept) % (space.nKept - space.longest));
}

/** The state of an agent who has only ever said and heard one word. */
export function consensusState(space, word) {
  return word === 0 ? space.nKept : space.nStates - 1;
}

/** The interactions of a memory as [own, partner], oldest first. */
export function memoryOf(state) {
  const pairs = [];
  for (let rest = state; rest > 0; rest = Math.floor((rest - 1) / 4)) {
    const digit = (rest - 1) % 4;
    pairs.unshift([digit >> 1, digit & 1]);
  }
  return pairs;
}

/** The state with these interactions, [own, partner] oldest first. */
export function stateOf(pairs) {
  return pairs.reduce((state, [own, partner]) => 1 + 4 * state + 2 * own + partner, 0);
}
