// Sentences with numbers in them. Words come from users, so all text goes into the page as text.

/** Fills an element with parts: texts, and nodes from `shown` and `word`. */
export function say(element, ...parts) {
  element.replaceChildren(...parts.flat());
}

/** A number in a sentence: a short text, and all its digits in the page as well, under a name. */
export function shown(name, value, text) {
  const data = document.createElement("data");
  data.value = String(value);
  data.dataset.name = name;
  data.textContent = text;
  return data;
}

export function subscript(text) {
  const sub = document.createElement("sub");
  sub.textContent = text;
  return sub;
}

/** A word of the policy, in quotes and in its colour. */
export function word(words, number) {
  const span = document.createElement("span");
  span.className = `word-${number}`;
  span.textContent = quoted(words[number]);
  return span;
}

export function quoted(text) {
  return `“${text}”`;
}

/** A share as a percentage with as many digits as it takes to tell it from 0 and 100 %. */
export function percent(share) {
  const rare = Math.min(share, 1 - share);
  if (rare <= 0) return `${share > 0.5 ? 100 : 0} %`;
  if (rare < 1e-6) return share > 0.5 ? "almost 100 %" : "almost 0 %";
  const digits = rare >= 0.005 ? 1 : Math.min(6, Math.ceil(-Math.log10(rare)) - 1);
  return `${(100 * share).toFixed(digits)} %`;
}

/** A number with this many significant digits, and without an exponent where that is short. */
export function digits(value, significant) {
  if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e15)) return value.toExponential(significant - 1);
  return Number(value.toPrecision(significant)).toLocaleString("en", { maximumSignificantDigits: significant });
}

export function whole(value) {
  return Math.round(value).toLocaleString("en");
}

/** 'a', 'a and b', 'a, b and c' of parts that may be nodes. */
export function listed(parts) {
  return parts.flatMap((part, i) => {
    if (i === 0) return [part].flat();
    return [i === parts.length - 1 ? " and " : ", ", part].flat();
  });
}
