// The group-size law: which convention, and how surely, against the number of agents.

import { normalCdf } from "../engine/normal.js";
import { brush, Chart } from "./chart.js";
import { digits, percent, quoted, say, shown, subscript, whole, word } from "./text.js";

const SIZES = Array.from({ length: 120 }, (_, i) => 2 * 50_000 ** (i / 119));
const WHY_NOT = {
  marginal: "A resting point neither attracts nor repels, so that no law of group size is known here.",
  "one attractor": "Only one state attracts: groups of every size drift to it.",
  "no attractor": "No state of the population lasts, so that there is no convention to end at.",
  "many attractors": "There are more than two states in which a population can rest, for which no such law is known.",
  nowhere: "From empty memories a population is led to neither of the two conventions, so that noise decides alone.",
  "two directions": "The tipping point can be left in two ways, for which no such law is known.",
  "no path": "No way to the tipping point was found, which happens where it is left very slowly or the bias is very strong.",
  "long path": "The way to the tipping point takes so long that this page does not compute it; the Python package does.",
};

export class Law {
  constructor(element, sentence) {
    this.sentence = sentence;
    this.chart = new Chart(element, {
      x: { log: true, range: () => [2, 100_000], format: powers },
      y: { range: () => [0.48, 1.02], format: (chance) => `${Math.round(100 * chance)} %` },
      lines: [{ colour: "ink", width: 2.75 }],
      draw: (plot) => this.paint(plot),
      height: 280,
    });
  }

  show(words, found, settings) {
    Object.assign(this, { found, nAgents: settings.agents });
    const known = !Number.isNaN(found.kappa);
    const end = found.strong === null ? "the stronger side" : quoted(words[found.strong]);
    this.chart.label("agents in the group", `chance of ${end}`);
    this.chart.show([SIZES, SIZES.map((size) => (known ? normalCdf(found.kappa * Math.sqrt(size)) : null))]);
    this.chart.element.hidden = !known;
    say(this.sentence, ...(known ? sentence(words, found, settings) : [WHY_NOT[found.reason]]));
    if (settings.committed0 + settings.committed1 > 0) {
      this.sentence.append(" This is for groups in which nobody is committed to a word.");
    }
  }

  paint(plot) {
    if (!this.found || Number.isNaN(this.found.kappa)) return;
    const { kappa, critical } = this.found;
    const paint = brush(plot);
    if (critical > 2 && critical < 100_000) {
      paint.line([[critical, 0.48], [critical, 0.99], [2, 0.99]], "soft", 1.25, [4, 4]);
    }
    paint.line([[this.nAgents, 0.48], [this.nAgents, 1.02]], "run", 2);
    paint.circle([this.nAgents, normalCdf(kappa * Math.sqrt(this.nAgents))], "run", true);
  }
}

function powers(size) {
  return Number.isInteger(Math.log10(size)) || size === 2 ? whole(size) : "";
}

function sentence(words, { kappa, critical, strong }, { agents }) {
  const chance = normalCdf(kappa * Math.sqrt(agents));
  const end = strong === null ? "the stronger side" : word(words, strong);
  if (kappa === Infinity) return ["From empty memories agents only ever say ", end, ", in groups of every size."];
  return [
    `Groups of ${whole(agents)} who start with empty memories end at `,
    end,
    " with a chance of ",
    shown("chance", chance, percent(chance)),
    ", as the bias is κ\u00a0=\u00a0",
    shown("kappa", kappa, digits(kappa, 4)),
    ". From N",
    subscript("c"),
    "\u00a0=\u00a0",
    shown("critical-size", critical, whole(Math.max(critical, 2))),
    " agents on the chance is 99 % or more.",
  ];
}
