// The chain of an agent seen just after it speaks, and its closed classes.
//
// A flow is (the interactions kept, the word just said), with the partner's word still open. With a word heard it makes
// the full memory 2·flow + heard.

/** P(said | flow, heard) at 4·flow + 2·heard + said: the policy of full memories. */
export function saidNext(q, space) {
  return q.slice(2 * space.nKept);
}

/** The flow after hearing `heard` and then saying `said`, at 4·flow + 2·heard + said. */
export function flowSuccessors(space) {
  const kept = space.nFlows / 2;
  return Int32Array.from({ length: 4 * space.nFlows }, (_, i) => 2 * ((i >> 1) % kept) + (i & 1));
}

/** The closed classes of flows, if partners say both words; one is left only by answers of probability at most `leak`. */
export function closedClasses(q, space, leak = 0) {
  const said = saidNext(q, space);
  const successors = flowSuccessors(space);
  const targets = Array.from({ length: space.nFlows }, (_, flow) =>
    [0, 1, 2, 3].flatMap((i) => (said[4 * flow + i] > leak ? [successors[4 * flow + i]] : [])),
  );
  const sources = targets.map(() => []);
  targets.forEach((list, flow) => list.forEach((target) => sources[target].push(flow)));
  const classes = [];
  const known = new Set();
  for (let flow = 0; flow < space.nFlows; flow++) {
    if (known.has(flow)) continue;
    const [after, before] = [reachedFrom(flow, targets), reachedFrom(flow, sources)];
    if ([...after].every((one) => before.has(one))) classes.push([...after].sort((a, b) => a - b));
    before.forEach((one) => known.add(one)); // of the class, or left for good
  }
  return classes;
}

function reachedFrom(start, targets) {
  const reached = new Set([start]); // its iteration goes on with what is added
  for (const flow of reached) targets[flow].forEach((target) => reached.add(target));
  return reached;
}
