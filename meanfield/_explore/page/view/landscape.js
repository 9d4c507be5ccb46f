// The flow on the line of word shares, with fixed points and basins.

import { brush, Chart, wholePercent } from "./chart.js";
import { listed, percent, quoted, say, shown, word } from "./text.js";

const ARROWS = 19;
const SEEN = 1e-6; // of shares, as sentences tell them

export class Landscape {
  constructor(element, sentence, key) {
    Object.assign(this, { sentence, key });
    this.chart = new Chart(element, {
      x: { range: () => [0, 1], format: wholePercent },
      y: { range: () => padded(this.found?.drift.flat() ?? []), format: signedPercent },
      lines: [{ colour: "ink" }],
      draw: (plot) => this.paint(plot),
      height: 280,
    });
  }

  show(words, { points, stretches, shares, drift }) {
    this.found = { points, shares, drift };
    this.chart.label(`share of ${quoted(words[0])} that agents hear`, "said − heard");
    this.chart.show([shares, shares.map(() => null)]);
    say(this.sentence, ...sentences(words, points, stretches));
  }

  paint(plot) {
    if (!this.found) return;
    const { points, shares, drift } = this.found;
    const paint = brush(plot);
    paint.line([[0, 0], [1, 0]], "soft", 1);
    for (const { from, to, towards } of basinsOf(points)) paint.band(from, to, `wash-${towards}`, `word-${towards}`);
    this.key.hidden = points.every((point) => point.status !== "unstable");
    for (const line of drift) paint.line(shares.map((share, i) => [share, line[i]]), "ink", 2.5);
    // Agents who cannot leave one class of memories for another move differently in each.
    for (let k = 0; k < ARROWS && drift.length === 1; k++) {
      const share = (k + 0.5) / ARROWS;
      const speed = drift[0][Math.round(share * (shares.length - 1))];
      const length = Math.sign(speed) * (9 + 16 * Math.min(1, Math.abs(speed) / 0.1));
      if (Math.abs(speed) > 1e-4) paint.arrow(share, 0, length, "soft");
    }
    for (const { Q, status } of points) paint.circle([Q[0], 0], "ink", status === "stable");
  }
}

function signedPercent(value) {
  const text = (100 * value).toFixed(Math.abs(value) < 0.01 && value !== 0 ? 1 : 0);
  return `${value > 0 ? "+" : ""}${text.replace("-", "−")} %`;
}

function padded(values) {
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const reach = Math.max(-low, high, 0.01);
  return [Math.min(low, -0.25 * reach) * 1.1, Math.max(high, 0.25 * reach) * 1.1];
}

/** The stretches between tipping points, none if there is no such point: the highest leads to word 0, the lowest to word 1. */
function basinsOf(points) {
  const tipping = points.filter((point) => point.status === "unstable").map((point) => point.Q[0]);
  const edges = [0, ...tipping.reverse(), 1];
  return edges.length === 2 ? [] : edges.slice(1).map((to, i) => ({ from: edges[i], to, towards: leadsTo(points, edges, i) }));
}

function leadsTo(points, edges, i) {
  if (i === 0) return 1;
  if (i === edges.length - 2) return 0;
  const inside = points.find(({ Q, status }) => status === "stable" && Q[0] >= edges[i] && Q[0] <= edges[i + 1]);
  return inside && inside.Q[0] >= 0.5 ? 0 : 1;
}

/** The share of the word that most say. */
function mostly(words, { Q }, number) {
  const most = Q[0] >= 0.5 ? 0 : 1;
  return [shown(`fixed-point-${number}`, Q[most], percent(Q[most])), " ", word(words, most)];
}

function sentences(words, points, stretches) {
  const at = stretches.filter(([low, high]) => high > SEEN && low < 1 - SEEN);
  const lasting = points.filter((point) => point.status === "stable");
  const tipping = points.filter((point) => point.status === "unstable");
  const marginal = points.filter(
    ({ status, Q }) => status === "marginal" && !at.some(([low, high]) => low - SEEN <= Q[0] && Q[0] <= high + SEEN),
  );
  const share = (point) => shown(`fixed-point-${points.indexOf(point)}`, point.Q[0], percent(point.Q[0]));
  const parts = [];
  if (!points.length) parts.push("A very large population can rest somewhere, but rounding hides where.");
  else if (!lasting.length && !marginal.length && !at.length) parts.push("No state of a very large population lasts.");
  if (lasting.length) {
    parts.push(lasting.length === 1 ? "A very large population rests at " : "A very large population can rest at ");
    parts.push(...listed(lasting.map((point) => mostly(words, point, points.indexOf(point)))), ".");
  }
  if (tipping.length) {
    parts.push(tipping.length === 1 ? " The tipping point is at " : " Tipping points are at ");
    parts.push(...listed(tipping.map(share)), ": who hears more of ", word(words, 0), " than that goes on towards it.");
  }
  if (marginal.length) {
    parts.push(" Linear stability cannot tell whether the population returns to ", ...listed(marginal.map(share)), ".");
  }
  for (const [low, high] of at) {
    const [least, most] = [low < SEEN ? 0 : low, high > 1 - SEEN ? 1 : high];
    parts.push(` Up to rounding, it can rest at every share between ${percent(least)} and ${percent(most)}.`);
  }
  parts.push(" Arrows show where agents move who have long heard the share below.");
  return parts;
}
