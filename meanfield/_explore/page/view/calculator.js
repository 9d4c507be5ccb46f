// Questions to the engine, answered in workers so that the page stays responsive.

import { answer } from "../engine/answers.js";

const WORKER = 'onmessage = ({ data }) => postMessage(modules["engine/answers.js"].answer(data));';
const MOST_KNOWN = 60; // answers kept

/**
 * A calculator for one kind of question. `tell` gets the answer to the latest question; answers to older ones are left
 * out, and an impatient calculator does not even finish them.
 */
export class Calculator {
  constructor(tell, { impatient = false } = {}) {
    this.tell = tell;
    this.impatient = impatient;
    this.asked = null; // the question being answered
    this.next = null;
    this.known = new Map();
  }

  ask(question, key) {
    this.next = null;
    if (this.known.has(key)) {
      this.stop();
      this.tell(this.known.get(key));
    } else if (this.asked && !this.impatient) {
      if (this.asked.key !== key) this.next = { question, key };
    } else if (this.asked?.key !== key) {
      this.stop();
      this.start({ question, key });
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
    this.known.set(this.asked.key, found);
    this.asked = null;
    if (this.next) {
      const { next } = this;
      this.next = null;
      this.start(next);
    }
    this.tell(found);
  }

  /** A worker, or null where the browser allows none to a page from a file: then the page computes by itself. */
  newWorker() {
    const alone = () => {
      this.worker = null;
      if (this.asked) this.start(this.asked);
    };
    try {
      const source = new Blob([document.getElementById("engine").textContent, WORKER], { type: "text/javascript" });
      const worker = new Worker(URL.createObjectURL(source));
      worker.onmessage = ({ data }) => this.receive(data);
      worker.onerror = alone;
      return worker;
    } catch {
      return null;
    }
  }
}
