// The flow on the line of word shares, with fixed points and basins.

import { brush, Chart } from "./chart.js";
import { listed, percent, quoted, say, shown, word } from "./text.js";

const ARROWS = 19;

export class Landscape {
  constructor(element, sentence) {
    this.sentence = sentence;
    this.chart = new Chart(element, {
      x: { range: () => [0, 1], format: percent0 },
      y: { range: (_, low, high) => padded(low, high), format: signedPercent },
      lines: [{ colour: "ink", width: 2.5 }],
      draw: (plot) => this.paint(plot),
      height: 280,
    });
  }

  show(words, { points, shares, drift }) {
    this.found = { points, shares, drift };
    this.chart.label(`share of ${quoted(words[0])} that agents hear`, "they say less they hear");
    this.chart.show([shares, drift]);
    say(this.sentence, ...sentences(words, points));
  }

  paint(plot) {
    if (!this.found) return;
    const { points, drift } = this.found;
    const paint = brush(plot);
    paint.line([[0, 0], [1, 0]], "soft", 1);
    for (const { from, to, towards } of basinsOf(points)) paint.band(from, to, `wash-${towards}`, `word-${towards}`);
    for (let k = 0; k < ARROWS; k++) {
      const share = (k + 0.5) / ARROWS;
      const speed = drift[Math.round(share * (drift.length - 1))];
      const length = Math.sign(speed) * (9 + 16 * Math.min(1, Math.abs(speed) / 0.1));
      if (Math.abs(speed) > 1e-4) paint.arrow(share, 0, length, "soft");
    }
    for (const { Q, status } of points) paint.circle([Q[0], 0], "ink", status === "stable");
  }
}

function percent0(share) {
  return `${Math.round(100 * share)} %`;
}

function signedPercent(value) {
  const text = (100 * value).toFixed(Math.abs(value) < 0.01 && value !== 0 ? 1 : 0);
  return `${value > 0 ? "+" : ""}${text.replace("-", "−")} %`;
}

function padded(low, high) {
  const reach = Math.max(Math.abs(low ?? 0), Math.abs(high ?? 0), 0.01);
  return [Math.min(low, -0.25 * reach) * 1.1, Math.max(high, 0.25 * reach) * 1.1];
}

/** Stretches between unstable points: of several the highest leads to word 0, the lowest to word 1. */
function basinsOf(points) {
  const rising = points.slice().reverse();
  const edges = [0, ...rising.filter((point) => point.status === "unstable").map((point) => point.Q[0]), 1];
  const basins = edges.slice(1).map((to, i) => {
    const inside = rising.find((point) => point.status === "stable" && point.Q[0] >= edges[i] && point.Q[0] <= to);
    const leaning = inside && inside.Q[0] >= 0.5 ? 0 : 1;
    const towards = edges.length === 2 ? leaning : i === 0 ? 1 : to === 1 ? 0 : leaning;
    return { from: edges[i], to, towards };
  });
  return basins.filter(({ from, to }) => to > from);
}

function sentences(words, points) {
  const lasting = points.filter((point) => point.status === "stable");
  const tipping = points.filter((point) => point.status === "unstable");
  const marginal = points.filter((point) => point.status === "marginal");
  const share = (point) => shown(`fixed-point-${points.indexOf(point)}`, point.Q[0], percent(point.Q[0]));
  const parts = [];
  if (lasting.length === 0) parts.push("No state of a very large population lasts.");
  else {
    parts.push(lasting.length === 1 ? "A very large population rests at " : "A very large population can rest at ");
    parts.push(...listed(lasting.map((point) => [share(point), " ", word(words, 0)])), ".");
  }
  if (tipping.length) {
    parts.push(tipping.length === 1 ? " The tipping point is at " : " Tipping points are at ");
    parts.push(...listed(tipping.map(share)), ": who hears more of ", word(words, 0), " than that goes on towards it.");
  }
  if (marginal.length) parts.push(" It leaves ", ...listed(marginal.map(share)), " so slowly that no slope tells.");
  parts.push(" Arrows show where agents move who have long heard the share below.");
  return parts;
}
