// Products of drift and noise with vectors, for agents of one policy.
//
// With kept[k, a] = Σ_i x_i q_a(i), summed over the states i that keep the memory k, and R[k, a, b] the value of the state
// that follows k after saying a and hearing b, all of them are sums over k.

import { keptMemory } from "./memory.js";

export function pathEquations(q, space) {
  const { nStates, nKept } = space;
  const memory = Int32Array.from({ length: nStates }, (_, state) => keptMemory(space, state));

  /** kept, at 2k + a, and its sum over k. */
  function keep(x) {
    const kept = new Float64Array(2 * nKept);
    const said = [0, 0];
    for (let i = 0; i < nStates; i++) {
      const first = x[i] * q[2 * i];
      const second = x[i] * q[2 * i + 1];
      kept[2 * memory[i]] += first;
      kept[2 * memory[i] + 1] += second;
      said[0] += first;
      said[1] += second;
    }
    return { kept, said };
  }

  /** Σ_k kept[k, a] R[k, a, b], at 2a + b. */
  function met(kept, w) {
    const sums = [0, 0, 0, 0];
    for (let k = 0, i = 1; k < nKept; k++, i += 4) {
      sums[0] += kept[2 * k] * w[i];
      sums[1] += kept[2 * k] * w[i + 1];
      sums[2] += kept[2 * k + 1] * w[i + 2];
      sums[3] += kept[2 * k + 1] * w[i + 3];
    }
    return sums;
  }

  /** Σ_b Q_b R[k, a, b], at 2k + a. */
  function overHeard(w, Q) {
    const out = new Float64Array(2 * nKept);
    for (let j = 0; j < 2 * nKept; j++) out[j] = Q[0] * w[1 + 2 * j] + Q[1] * w[2 + 2 * j];
    return out;
  }

  return {
    q,
    space,
    memory,
    keep,
    met,

    /** F(x). */
    drift(x) {
      const { kept, said } = keep(x);
      const total = said[0] + said[1];
      const out = x.map((value) => -value);
      for (let j = 0; j < 2 * nKept; j++) {
        out[1 + 2 * j] += (kept[j] * said[0]) / total;
        out[2 + 2 * j] += (kept[j] * said[1]) / total;
      }
      return out;
    },

    /** J(x)ᵀw. */
    transposed(x, w) {
      const { kept, said } = keep(x);
      const total = said[0] + said[1];
      const Q = [said[0] / total, said[1] / total];
      const sums = met(kept, w);
      const effect = [(sums[0] + sums[2]) / total, (sums[1] + sums[3]) / total];
      const mean = effect[0] * Q[0] + effect[1] * Q[1];
      const then = overHeard(w, Q);
      const out = new Float64Array(nStates);
      for (let i = 0; i < nStates; i++) {
        const k = 2 * memory[i];
        const first = then[k] + effect[0] - mean;
        const second = then[k + 1] + effect[1] - mean;
        out[i] = q[2 * i] * first + q[2 * i + 1] * second - w[i];
      }
      return out;
    },

    /** D(x)w, with D the covariance of the noise, in the time of the rate equation and for one agent. */
    noise(x, w) {
      const out = new Float64Array(nStates);
      for (let i = 0; i < nStates; i++) out[i] = x[i] * w[i];
      const { kept, said: Q } = keep(x);
      const { kept: keptWeighted, said: saidWeighted } = keep(out);
      const jump = met(kept, w).map((sum, place) => sum - saidWeighted[place >> 1]);
      const lost = overHeard(w, Q);
      for (let j = 0; j < 2 * nKept; j++) lost[j] += jump[j & 1] + jump[2 + (j & 1)];
      for (let i = 0; i < nStates; i++) {
        const k = 2 * memory[i];
        out[i] -= x[i] * (q[2 * i] * lost[k] + q[2 * i + 1] * lost[k + 1]);
      }
      for (let j = 0; j < 2 * nKept; j++) {
        for (let b = 0; b < 2; b++) {
          const i = 1 + 2 * j + b;
          out[i] += kept[j] * (Q[b] * w[i] + jump[2 * b + (j & 1)]) - Q[b] * keptWeighted[j];
        }
      }
      return out;
    },
  };
}

export function dotProduct(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}
