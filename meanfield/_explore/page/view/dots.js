// Agents as dots, coloured and shaped by the word that each said last.

import { lastWord } from "../engine/simulation.js";
import { colour } from "./chart.js";

const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
const MEETINGS_SEEN = 30; // a second: below, the two who met last are joined by a line

export class Dots {
  constructor(canvas) {
    this.canvas = canvas;
    this.places = [];
    new ResizeObserver(() => this.fit()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.fit());
  }

  fit() {
    const size = Math.round(this.canvas.clientWidth * devicePixelRatio);
    if (size && size !== this.canvas.width) this.canvas.width = this.canvas.height = size;
    this.colours = null;
    if (this.run) this.show(this.run, this.speed);
  }

  /** Draws a run that plays this many meetings a second. */
  show(run, speed) {
    [this.run, this.speed] = [run, speed];
    const context = this.canvas.getContext("2d");
    const { width } = this.canvas;
    this.colours ??= { 0: colour("word-0"), 1: colour("word-1"), none: colour("none"), ink: colour("ink") };
    if (this.places.length !== run.nAgents || this.width !== width) this.arrange(run.nAgents, width);
    context.clearRect(0, 0, width, width);
    if (run.played + run.inRound > 0 && speed < MEETINGS_SEEN) this.join(context, run.latest);
    for (const said of [-1, 0, 1]) this.paint(context, run, said);
    this.ring(context, run);
  }

  /** A sunflower: as many dots as wanted fill a disc evenly. */
  arrange(number, width) {
    this.width = width;
    const spacing = (0.94 * width) / 2 / Math.sqrt(number);
    this.radius = Math.max(0.9, Math.min(0.72 * spacing, width / 30));
    this.places = Array.from({ length: number }, (_, k) => {
      const distance = spacing * Math.sqrt(k + 0.5);
      return [width / 2 + distance * Math.cos(k * GOLDEN_ANGLE), width / 2 + distance * Math.sin(k * GOLDEN_ANGLE)];
    });
  }

  /** All agents who said this word last; the second word has squares, so that its colour is not alone to tell. */
  paint(context, run, said) {
    const { radius, places } = this;
    const r = said < 0 ? 0.6 * radius : radius;
    context.beginPath();
    for (let agent = 0; agent < run.nAgents; agent++) {
      if (lastWord(run.states[agent]) !== said) continue;
      const [x, y] = places[agent];
      if (said === 1) context.rect(x - 0.86 * r, y - 0.86 * r, 1.72 * r, 1.72 * r);
      else {
        context.moveTo(x + r, y);
        context.arc(x, y, r, 0, 2 * Math.PI);
      }
    }
    context.fillStyle = said < 0 ? this.colours.none : this.colours[said];
    context.fill();
  }

  ring(context, run) {
    context.beginPath();
    run.kind.forEach((word, agent) => {
      if (word < 0) return;
      const [x, y] = this.places[agent];
      context.moveTo(x + 1.25 * this.radius, y);
      context.arc(x, y, 1.25 * this.radius, 0, 2 * Math.PI);
    });
    context.strokeStyle = this.colours.ink;
    context.lineWidth = Math.max(1, this.radius / 5);
    context.stroke();
  }

  join(context, pair) {
    context.beginPath();
    for (const agent of pair) context.lineTo(...this.places[agent]);
    context.strokeStyle = this.colours.ink;
    context.lineWidth = Math.max(1, this.radius / 4);
    context.stroke();
  }
}
