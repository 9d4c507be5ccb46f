// Critical masses, and all equilibria as a committed minority grows.

import { brush, Chart, wholePercent } from "./chart.js";
import { percent, quoted, say, shown, word } from "./text.js";

export class Masses {
  constructor(element, sentence) {
    this.sentence = sentence;
    this.largest = 0.5;
    this.chart = new Chart(element, {
      x: { range: () => [0, this.largest], format: fraction },
      y: { range: () => [-0.02, 1.02], format: wholePercent },
      lines: [{ colour: "ink" }],
      draw: (plot) => this.paint(plot),
      height: 300,
    });
  }

  show(words, { masses, stretches }, settings) {
    this.stretches = stretches;
    this.chart.label(`fraction who always say ${quoted(words[settings.picture])}`, `share of ${quoted(words[0])}`);
    this.now = [settings.committed0, settings.committed1][settings.picture] / 1000;
    const mass = masses[settings.picture].mass;
    this.largest = Math.min(1, Math.max(0.1, 1.6 * (mass || 0.3), 1.25 * this.now));
    this.chart.show([[0, this.largest], [null, null]]);
    say(this.sentence, ...masses.flatMap((found, w) => sentence(words, found, w)));
  }

  paint(plot) {
    if (!this.stretches) return;
    const paint = brush(plot);
    paint.line([[this.now, -0.02], [this.now, 1.02]], "run", 2);
    for (const { stable, c, share } of this.stretches) {
      const points = c.map((one, i) => [one, share[i]]);
      paint.line(points, "ink", stable ? 2.75 : 1.75, stable ? [] : [6, 5]);
    }
  }
}

function fraction(value) {
  return `${Number((100 * value).toFixed(1))} %`;
}

function sentence(words, { mass, transition, turn, said }, w) {
  const firm = ["always say ", word(words, w)];
  if (!Number.isNaN(turn)) {
    const share = shown(`turn-${w}`, turn, percent(turn));
    return ["From ", share, " of agents who ", ...firm, " on, most of the others say ", word(words, said), ". "];
  }
  if (transition === "none") return ["No number of agents who ", ...firm, " ends a convention at once. "];
  const end = transition === "continuous" ? " has faded away. " : " breaks down. ";
  return ["If more than ", shown(`mass-${w}`, mass, percent(mass)), " of all agents ", ...firm, ", the convention ", word(words, 1 - w), end];
}
