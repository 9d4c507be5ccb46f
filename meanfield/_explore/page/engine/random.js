// One xoshiro256++ stream a run, seeded by SplitMix64, bit for bit as in Python. 64-bit words are pairs of 32 bits.
//
// Sources: Blackman and Vigna 2021, ACM Trans. Math. Softw. 47, 36; Steele, Lea and Flood 2014 (SplitMix64).

const GOLDEN = 0x9e3779b97f4a7c15n;
const MIX_1 = 0xbf58476d1ce4e5b9n;
const MIX_2 = 0x94d049bb133111ebn;
const ALL_BITS = (1n << 64n) - 1n;

function splitmix(key) {
  let z = (key + GOLDEN) & ALL_BITS;
  z = ((z ^ (z >> 30n)) * MIX_1) & ALL_BITS;
  z = ((z ^ (z >> 27n)) * MIX_2) & ALL_BITS;
  return z ^ (z >> 31n);
}

/** The stream of a run: four words as (high, low) halves, followed by the halves of the latest bits. */
export function seededStream(seed, nAgents, run) {
  let key = splitmix(BigInt(seed));
  key = splitmix((key + BigInt(nAgents)) & ALL_BITS);
  key = splitmix((key + BigInt(run)) & ALL_BITS);
  const stream = new Int32Array(10);
  for (let word = 0; word < 4; word++) {
    const bits = splitmix((key + BigInt(word) * GOLDEN) & ALL_BITS);
    stream[2 * word] = Number(bits >> 32n);
    stream[2 * word + 1] = Number(bits & 0xffffffffn);
  }
  return stream;
}

/** Draws 64 bits, into the last two places of the stream. */
export function drawBits(stream) {
  let [h0, l0, h1, l1, h2, l2, h3, l3] = stream;
  // bits = rotl(s0 + s3, 23) + s0
  let low = (l0 >>> 0) + (l3 >>> 0);
  let high = (h0 + h3 + (low > 0xffffffff ? 1 : 0)) | 0;
  low |= 0;
  const turnedHigh = (high << 23) | (low >>> 9);
  const turnedLow = (low << 23) | (high >>> 9);
  low = (turnedLow >>> 0) + (l0 >>> 0);
  stream[8] = turnedHigh + h0 + (low > 0xffffffff ? 1 : 0);
  stream[9] = low;
  // t = s1 << 17
  const th = (h1 << 17) | (l1 >>> 15);
  const tl = l1 << 17;
  h2 ^= h0;
  l2 ^= l0;
  h3 ^= h1;
  l3 ^= l1;
  h1 ^= h2;
  l1 ^= l2;
  h0 ^= h3;
  l0 ^= l3;
  h2 ^= th;
  l2 ^= tl;
  stream[0] = h0;
  stream[1] = l0;
  stream[2] = h1;
  stream[3] = l1;
  stream[4] = h2;
  stream[5] = l2;
  // s3 = rotl(s3, 45): halves change places
  stream[6] = (l3 << 13) | (h3 >>> 19);
  stream[7] = (h3 << 13) | (l3 >>> 19);
}

/** The upper and lower half of the latest bits, as numbers from 0 to 2^32 - 1. */
export function upperHalf(stream) {
  return stream[8] >>> 0;
}

export function lowerHalf(stream) {
  return stream[9] >>> 0;
}
