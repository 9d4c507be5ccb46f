// The group-size law: which convention wins, and with what probability, against the number of agents.

import { brush, Chart, wholePercent } from "./chart.js";
import { digits, percent, quoted, say, shown, subscript, whole, word } from "./text.js";

const SIZES = Array.from({ length: 120 }, (_, i) => 2 * 50_000 ** (i / 119));

export class Law {
  constructor(element, sentence) {
    this.sentence = sentence;
    this.chart = new Chart(element, {
      x: { log: true, range: () => [2, 100_000], format: powers },
      y: { range: () => [0.48, 1.02], format: wholePercent },
      lines: [{ colour: "ink", width: 2.75 }],
      draw: (plot) => this.paint(plot),
      height: 280,
    });
  }

  show(words, found, settings) {
    Object.assign(this, { found, nAgents: settings.agents });
    const known = !Number.isNaN(found.kappa);
    const end = found.strong === null ? "the stronger side" : quoted(words[found.strong]);
    this.chart.label("agents in the group", `probability of ${end}`);
    this.chart.show([SIZES, SIZES.map((size) => (known ? normalCdf(found.kappa * Math.sqrt(size)) : null))]);
    this.chart.element.hidden = !known;
    const whyNot = `No law of group size is known here: ${found.reason}.`;
    say(this.sentence, ...(known ? sentence(words, found, settings) : [whyNot]));
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

/** The normal distribution function of z ≥ 0. */
function normalCdf(z) {
  if (z > 9) return 1;
  let [term, sum] = [z, z];
  for (let k = 3; term > 1e-17 * sum; k += 2) sum += term *= (z * z) / k;
  return 0.5 + (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * sum;
}

function powers(size) {
  return Number.isInteger(Math.log10(size)) || size === 2 ? whole(size) : "";
}

function sentence(words, { kappa, critical, strong }, { agents }) {
  const probability = normalCdf(kappa * Math.sqrt(agents));
  const end = strong === null ? "the stronger side" : word(words, strong);
  if (kappa === Infinity) return ["From empty memories agents only ever say ", end, ", in groups of every size."];
  return [
    `Groups of ${whole(agents)} who start with empty memories end at `,
    end,
    " with a probability of ",
    shown("probability", probability, percent(probability)),
    ", as the bias is κ\u00a0=\u00a0",
    shown("kappa", kappa, digits(kappa, 4)),
    ". From N",
    subscript("c"),
    "\u00a0=\u00a0",
    shown("critical-size", critical, whole(Math.max(critical, 2))),
    " agents on the probability is 99 % or more.",
  ];
}
