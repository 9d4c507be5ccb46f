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

/**
 * The closed classes of flows, if partners say all of the words `heard` and no others; a class is left only by answers
 * of probability at most `leak`.
 */
export function closedClasses(q, space, heard, leak = 0) {
  const said = saidNext(q, space);
  const successors = flowSuccessors(space);
  const targets = Array.from({ length: space.nFlows }, (_, flow) => {
    const places = heard.flatMap((b) => [4 * flow + 2 * b, 4 * flow + 2 * b + 1]);
    return places.filter((place) => said[place] > leak).map((place) => successors[place]);
  });
  const component = strongComponents(targets);
  const members = [];
  component.forEach((number, flow) => (members[number] ??= []).push(flow));
  const leaks = new Set();
  targets.forEach((list, flow) => {
    if (list.some((target) => component[target] !== component[flow])) leaks.add(component[flow]);
  });
  return members.filter((_, number) => !leaks.has(number));
}

/** The number of the strongly connected component of each node: Tarjan's algorithm, with a stack of its own. */
export function strongComponents(targets) {
  const n = targets.length;
  const index = new Int32Array(n).fill(-1);
  const low = new Int32Array(n);
  const component = new Int32Array(n).fill(-1);
  const waiting = [];
  let counter = 0;
  let components = 0;
  for (let root = 0; root < n; root++) {
    if (index[root] >= 0) continue;
    const path = [[root, 0]];
    while (path.length) {
      const top = path[path.length - 1];
      const [node, next] = top;
      if (next === 0) {
        index[node] = low[node] = counter++;
        waiting.push(node);
      }
      if (next < targets[node].length) {
        top[1]++;
        const target = targets[node][next];
        if (index[target] < 0) path.push([target, 0]);
        else if (component[target] < 0) low[node] = Math.min(low[node], index[target]);
        continue;
      }
      if (low[node] === index[node]) {
        let member;
        do component[(member = waiting.pop())] = components;
        while (member !== node);
        components++;
      }
      path.pop();
      if (path.length) {
        const parent = path[path.length - 1][0];
        low[parent] = Math.min(low[parent], low[node]);
      }
    }
  }
  return Array.from(component);
}
