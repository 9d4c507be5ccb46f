// What an agent says in a chosen memory.

import { memoryOf, stateOf } from "../engine/memory.js";
import { percent, quoted, say, shown, word } from "./text.js";

export class MemoryCard {
  /** `choose(state)` is called with each memory that the reader picks. */
  constructor({ slider, count, list, sentence, bar }, choose) {
    Object.assign(this, { slider, count, list, sentence, bar, choose });
    slider.addEventListener("input", () => choose(stateOf(this.resized(Number(slider.value)))));
  }

  show({ words, space }, q, state) {
    const pairs = memoryOf(state);
    this.pairs = pairs;
    this.slider.max = String(space.length);
    this.slider.value = String(pairs.length);
    this.count.textContent = `${pairs.length} of ${space.length}`;
    const probability = q[2 * state];
    this.bar.style.width = `${100 * probability}%`;
    say(this.sentence, ...sentence(words, pairs, probability));
    if (this.drawn !== `${words}|${pairs.length}`) this.build(words);
    this.drawn = `${words}|${pairs.length}`;
    [...this.list.querySelectorAll("select")].forEach((select, i) => (select.value = String(pairs[i >> 1][i & 1])));
  }

  /** The latest meetings stay; older ones are added as a repetition of the oldest, or forgotten. */
  resized(length) {
    const kept = this.pairs.slice(Math.max(0, this.pairs.length - length));
    while (kept.length < length) kept.unshift(kept[0] ?? [0, 0]);
    return kept;
  }

  build(words) {
    this.list.replaceChildren(
      ...this.pairs.map((_, place) => {
        const item = document.createElement("li");
        const title = document.createElement("h3");
        const ago = this.pairs.length - place;
        title.textContent = ago === 1 ? "last meeting" : `${ago} meetings ago`;
        item.append(title, this.choice("said", words, place, 0, title), this.choice("heard", words, place, 1, title));
        return item;
      }),
    );
  }

  choice(text, words, place, side, title) {
    const label = document.createElement("label");
    const select = document.createElement("select");
    select.setAttribute("aria-label", `${title.textContent}, ${text}`);
    select.append(...words.map((one, number) => new Option(one, String(number))));
    select.addEventListener("change", () => {
      const pairs = this.pairs.map((pair) => pair.slice());
      pairs[place][side] = Number(select.value);
      this.choose(stateOf(pairs));
    });
    label.append(text, select);
    return label;
  }
}

function sentence(words, pairs, probability) {
  const told = shown("memory-probability", probability, percent(probability));
  const end = [" says ", word(words, 0), " next with a probability of ", told];
  const other = [", and ", word(words, 1), " otherwise."];
  if (!pairs.length) return ["An agent who has met nobody yet", ...end, ...other];
  const said = pairs.map(([own, partner]) => `${quoted(words[own])} to ${quoted(words[partner])}`).join(", ");
  return [`An agent who remembers saying ${said}, the last meeting last,`, ...end, ...other];
}
