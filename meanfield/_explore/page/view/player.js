// Plays a run: at a speed, step by step, again from the start.

import { newRun, play } from "../engine/simulation.js";

const MOST_MEETINGS = 100_000; // in a frame
const LONGEST_FRAME = 0.1; // seconds: a page that was hidden does not catch up

export class Player {
  /** `tell(run, roundEnded)` is called after each change. */
  constructor(tell) {
    this.tell = tell;
    this.playing = false;
  }

  /** A new run before its first meeting, which ends after this many rounds. */
  restart(options, speed, rounds) {
    this.run = newRun(options);
    this.pace(speed, rounds);
    this.owed = 0;
    this.tell(this.run, true);
  }

  /** Rounds a second, and the round at which to stop. */
  pace(speed, rounds) {
    [this.speed, this.rounds] = [speed, rounds];
  }

  get over() {
    return this.run.played >= this.rounds;
  }

  toggle(playing) {
    if (playing === this.playing || (playing && this.over)) return;
    this.playing = playing;
    this.tell(this.run, false);
    if (playing) {
      this.before = performance.now();
      requestAnimationFrame((now) => this.frame(now));
    }
  }

  step() {
    if (this.over) return;
    play(this.run, this.run.nAgents - this.run.inRound);
    this.tell(this.run, true);
  }

  frame(now) {
    if (!this.playing) return;
    const seconds = Math.min(Math.max(now - this.before, 0) / 1000, LONGEST_FRAME);
    this.before = now;
    const left = (this.rounds - this.run.played) * this.run.nAgents - this.run.inRound;
    this.owed = Math.min(this.owed + seconds * this.speed * this.run.nAgents, MOST_MEETINGS, left);
    const meetings = Math.floor(this.owed);
    this.owed -= meetings;
    const { played } = this.run;
    play(this.run, meetings);
    if (this.over) this.playing = false;
    this.tell(this.run, this.run.played > played);
    if (this.playing) requestAnimationFrame((then) => this.frame(then));
  }
}
