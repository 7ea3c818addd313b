/** Words for people: lengths, instants, counts, and text that cannot act on the page. */

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const UNITS = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];

/** Text with what a reader cannot see (controls, direction marks) written as an escape. */
export function clean(text, { lines = false } = {}) {
  return String(text).replace(UNSEEN, (found) =>
    lines && (found === "\n" || found === "\t")
      ? found
      : `\\u${found.codePointAt(0).toString(16).padStart(4, "0")}`);
}

/** Length in ns as three digits with a unit; from 100 s on in minutes and hours. */
export function duration(ns) {
  const size = Math.abs(ns);
  const sign = ns < 0 ? "-" : "";
  if (size >= 100e9) {
    const seconds = Math.round(size / 1e9);
    const minutes = Math.floor(seconds / 60);
    return minutes < 60
      ? `${sign}${minutes} min ${seconds % 60} s`
      : `${sign}${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }
  let [unit, per] = UNITS[0];
  for (const [name, length] of UNITS) if (size >= length * 0.9995) [unit, per] = [name, length];
  const value = size / per;
  const digits = unit === "ns" || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${sign}${value.toFixed(digits)} ${unit}`;
}

/** A count with thousands apart. */
export function count(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 span`, `2 spans`. */
export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

/** BigInt ns since 1970 as UTC with all nine digits. */
export function instant(time) {
  const second = time / 1_000_000_000n;
  const moment = new Date(Number(second) * 1000);
  if (Number.isNaN(moment.getTime())) return `${time} ns since 1970`;
  const date = moment.toISOString().slice(0, 19).replace("T", " ");
  return `${date}.${String(time % 1_000_000_000n).padStart(9, "0")} UTC`;
}

/** What a JSON text says: text as it is, all else as its JSON, so no number is rounded. */
export function spoken(json) {
  if (!json.startsWith('"')) return json;
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

/** An element with text or children; never markup. */
export function element(tag, { text, cls, children = [], ...attributes } = {}) {
  const made = document.createElement(tag);
  if (cls) made.className = cls;
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
