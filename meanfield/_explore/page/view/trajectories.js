// The rate equation from chosen starts, and the simulated run over it.

import { Chart, wholePercent } from "./chart.js";
import { listed, percent, quoted, say, shown, word } from "./text.js";

const STEPS = 400;
const TOLD = [0.1, 0.5, 1]; // of the rounds shown, where the sentence tells the share
const TIME_PER_ROUND = 2;

/** Times for this many rounds: each of them has two units of time. */
export function timesFor(rounds) {
  return Array.from({ length: STEPS + 1 }, (_, i) => (TIME_PER_ROUND * rounds * i) / STEPS);
}

export class Trajectories {
  constructor(element, sentence, basins) {
    this.sentence = sentence;
    this.basins = basins;
    this.rounds = 100;
    const fan = Array.from({ length: 9 }, () => ({ colour: "fan", width: 1 }));
    this.chart = new Chart(element, {
      x: { range: () => [0, this.rounds] },
      y: { range: () => [-0.02, 1.02], format: wholePercent },
      lines: [...fan, { colour: "run", width: 1.75 }, { colour: "ink", width: 2.75 }],
      height: 420,
    });
  }

  /** Takes a new solution; the run is drawn by `showRun`. */
  show(words, rounds, startText, { times, chosen, fan }) {
    this.rounds = rounds;
    this.times = times.map((time) => time / TIME_PER_ROUND);
    [this.chosen, this.fan] = [chosen, fan];
    this.chart.label("rounds of N meetings", `share of ${quoted(words[0])}`);
    const told = TOLD.map((part) => {
      const step = Math.round(part * STEPS);
      return [shown(`trajectory-${step}`, chosen[step], percent(chosen[step])), ` after ${rounds * part}`];
    });
    say(
      this.sentence,
      `From ${startText}, the rate equation of a very large population has `,
      word(words, 0),
      " said by ",
      ...told.flatMap((one, i) => (i ? [i === told.length - 1 ? " and " : ", ", ...one] : one)),
      " rounds.",
    );
    this.draw();
  }

  /** Takes the shares of agents with memories of word 0 at which the end changes. */
  showBasins(words, { boundaries, marginal }) {
    const shares = boundaries.map((share, i) => shown(`separatrix-${i}`, share, percent(share)));
    const rest = [" with memories of ", word(words, 0), " only, and the others of ", word(words, 1), " only."];
    const many = "Some starts end among states that neither attract nor repel; nearby starts may end at different ones.";
    const where = ` ${marginal ? "The convention" : "The end"} changes where a population starts with `;
    const same = marginal ? [] : ["Whatever the mixture of memories at the start, the end is the same."];
    say(this.basins, ...(marginal ? [many] : []), ...(shares.length ? [where, ...listed(shares), ...rest] : same));
  }

  /** Takes the share of word 0 of the run at the end of each round. */
  showRun(history) {
    this.history = history;
    this.draw();
  }

  draw() {
    if (!this.times) return;
    const run = this.times.map((round) => {
      const whole = Math.round(round);
      return Math.abs(round - whole) < 1e-9 && whole < (this.history?.length ?? 0) ? this.history[whole] : null;
    });
    this.chart.show([this.times, ...this.fan, run, this.chosen]);
  }
}
