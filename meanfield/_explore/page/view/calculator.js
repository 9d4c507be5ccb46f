// Questions to the engine, answered in workers so that the page stays responsive.

import { answer } from "../engine/answers.js";

const WORKER = 'onmessage = ({ data }) => postMessage(modules["engine/answers.js"].answer(data));';
const MOST_KNOWN = 60; // answers kept

let code; // the address of the workers' code, the same for all of them

/**
 * A calculator for one kind of question. `tell` gets each answer with the settings it was asked under, and whether
 * another question waits. Of the questions asked meanwhile only the latest waits; an impatient calculator drops its
 * present question for a new one.
 */
export class Calculator {
  constructor(tell, { impatient = false } = {}) {
    this.tell = tell;
    this.impatient = impatient;
    this.asked = null; // the question being answered
    this.next = null;
    this.known = new Map();
  }

  ask(question, key, settings) {
    const asked = { question, key, settings };
    this.next = null;
    if (this.known.has(key)) {
      this.stop();
      this.tell(this.known.get(key), settings, false);
    } else if (this.asked?.key === key) {
      this.asked.settings = settings;
    } else if (this.asked && !this.impatient) {
      this.next = asked;
    } else {
      this.stop();
      this.start(asked);
    }
  }

  start(asked) {
    this.asked = asked;
    if (this.worker === undefined) this.worker = this.newWorker();
    if (this.worker) this.worker.postMessage(asked.question);
    else setTimeout(() => this.asked === asked && this.receive(answer(asked.question)));
  }

  stop() {
    if (!this.asked) return;
    this.asked = null;
    if (!this.worker) return;
    this.worker.terminate();
    this.worker = undefined;
  }

  receive(found) {
    if (this.known.size === MOST_KNOWN) this.known.delete(this.known.keys().next().value);
    const { asked, next } = this;
    this.known.set(asked.key, found);
    this.asked = this.next = null;
    if (next) this.start(next);
    this.tell(found, asked.settings, next !== null);
  }

  /** A worker, or null where the browser allows none to a page from a file: then the page computes by itself. */
  newWorker() {
    const alone = () => {
      this.worker = null;
      if (this.asked) this.start(this.asked);
    };
    try {
      code ??= URL.createObjectURL(
        new Blob([document.getElementById("engine").textContent, WORKER], { type: "text/javascript" }),
      );
      const worker = new Worker(code);
      worker.onmessage = ({ data }) => this.receive(data);
      worker.onerror = alone;
      return worker;
    } catch {
      return null;
    }
  }
}
