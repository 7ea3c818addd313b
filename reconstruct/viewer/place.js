/** Where one is, as the address says it: `#view=flame&span=…&t=from,to&q=…&only=critical`. */

/** The state of an address; what is not there or makes no sense is left out. */
export function read(hash, views) {
  const asked = new URLSearchParams(hash.replace(/^#/, ""));
  const place = {};
  if (views.includes(asked.get("view"))) place.view = asked.get("view");
  if (/^[0-9a-f]{16}$/.test(asked.get("span") ?? "")) place.span = asked.get("span");
  const [from, to] = (asked.get("t") ?? "").split(",").map(Number);
  if (Number.isFinite(from) && Number.isFinite(to) && to > from) Object.assign(place, { from, to });
  if (asked.get("q")) place.q = asked.get("q");
  place.isCritical = asked.get("only") === "critical";
  place.isAligned = asked.get("clocks") === "aligned";
  return place;
}

/** The address of a state; the parts of the whole are left out. */
export function write({ view, span, from, to, q, isCritical, isAligned, isWhole }) {
  const asked = new URLSearchParams();
  if (view !== "waterfall") asked.set("view", view);
  if (span) asked.set("span", span);
  if (!isWhole) asked.set("t", `${Math.round(from)},${Math.round(to)}`);
  if (q) asked.set("q", q);
  if (isCritical) asked.set("only", "critical");
  if (isAligned) asked.set("clocks", "aligned");
  return `#${asked.toString().replaceAll("%2C", ",")}`;
}
