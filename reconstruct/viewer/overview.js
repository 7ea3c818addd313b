/** The run at a glance: rollouts over time, how many at once, how long they took, what held them up. */

import { clean, count, duration, element, plural } from "./text.js";
import { step } from "./paint.js";
import { drawing, svg } from "./svg.js";

const WIDE = 1080;
const SHOWN = 60;
const BARS = 36;

/** The overview as an element; `open(span)` shows a span in the waterfall. */
export function overview(model, open) {
  const rollouts = model.head.rollouts.map(
    ([id, run, start, length, outcome, spans, errors, unfinished, why, span]) =>
      ({ id, run, start, length, outcome, spans, errors, unfinished, why, span }));
  const parts = [figures(model, rollouts)];
  if (!rollouts.length) {
    parts.push(element("p", { cls: "empty", text: "No span here belongs to a rollout (nemo.gym.rollout.id), so there is nothing to compare. The waterfall and the flame view show what there is." }));
    return element("div", { cls: "page", children: parts });
  }
  const lengths = rollouts.map((one) => one.length).sort((a, b) => a - b);
  parts.push(section("Rollouts over time", "One line is a rollout, in order of its start. ✕ and a broken line: failed. Dotted grey: unfinished.", gantt(rollouts)));
  if (model.head.concurrency.length) {
    parts.push(section("Rollouts at once", "On average over each part of the time (filled), and at most (line).", concurrency(model)));
  }
  if (new Set(rollouts.map((one) => one.run)).size > 1) {
    parts.push(section("Rollouts at once", "Shown for one run at a time, and these are of several; --run chooses one.", ""));
  }
  parts.push(section("How long rollouts took", `Median ${duration(quantile(lengths, 0.5))}, 95 % within ${duration(quantile(lengths, 0.95))}, longest ${duration(lengths.at(-1))}.`, histogram(lengths)));
  parts.push(section("The longest rollouts", "Why: what each spent more on than the median rollout of its run.", stragglers(rollouts, open)));
  if (model.head.causes.length) {
    parts.push(section("What slow rollouts have in common", "Met by more slow rollouts than chance explains (below one in a hundred).", causes(model.head.causes)));
  }
  return element("div", { cls: "page", children: parts });
}

function section(title, words, content) {
  return element("section", { children: [element("h2", { text: title }), element("p", { cls: "soft", text: words }), content] });
}

function figures(model, rollouts) {
  let [errors, unfinished] = [0, 0];
  for (let span = 0; span < model.count; span += 1) {
    errors += model.isError(span) ? 1 : 0;
    unfinished += model.state(span) === "open" || model.state(span) === "lost" ? 1 : 0;
  }
  const shown = [
    [count(rollouts.length), "rollouts"], [count(model.head.trace_id.length), "traces"],
    [count(model.count), "spans"], [count(errors), "spans with errors"],
    [count(unfinished), "unfinished"], [duration(model.to - model.from), "first start to last end"]];
  return element("dl", { cls: "figures", children: shown.map(([value, name]) => element("div", {
    children: [element("dd", { text: value }), element("dt", { text: name })] })) });
}

function scale(from, to) {
  return (time) => 50 + ((time - from) / Math.max(to - from, 1)) * (WIDE - 60);
}

function timeAxis(from, to, height) {
  const x = scale(from, to);
  const size = step(to - from, 9);
  const parts = [];
  for (let mark = 0; mark <= to - from; mark += size) {
    parts.push(svg("line", { x1: x(from + mark), x2: x(from + mark), y1: 0, y2: height, class: "rule" }));
    if (x(from + mark) < WIDE - 30) parts.push(svg("text", { x: x(from + mark) + 4, y: height + 15, class: "mark", text: mark ? duration(mark) : "0" }));
  }
  return parts;
}

function gantt(rollouts) {
  const from = Math.min(...rollouts.map((one) => one.start));
  const to = Math.max(...rollouts.map((one) => one.start + one.length));
  const x = scale(from, to);
  const high = Math.min(Math.max(rollouts.length * 9, 60), 320);
  const each = high / rollouts.length;
  const lines = { success: "", failure: "", unfinished: "" };
  rollouts.forEach((one, at) => {
    const y = ((at + 0.5) * each).toFixed(1);
    const end = Math.max(x(one.start + one.length), x(one.start) + 1.5);
    lines[one.outcome] += `M${x(one.start).toFixed(1)} ${y}H${end.toFixed(1)}`;
  });
  const thick = Math.max(Math.min(each * 0.66, 9), 0.8).toFixed(2);
  const paths = Object.entries(lines).filter(([, d]) => d).map(
    ([outcome, d]) => svg("path", { d, class: `rollout ${outcome}`, "stroke-width": outcome === "success" ? thick : Math.max(thick, 1.5) }));
  const crosses = each < 6 ? [] : rollouts.flatMap((one, at) => one.outcome !== "failure" ? [] : [
    svg("text", { x: x(one.start) - 13, y: (at + 0.5) * each + 4, class: "mark cross", text: "✕" })]);
  const label = `${plural(rollouts.length, "rollout")} over ${duration(to - from)}`;
  return drawing(WIDE, high + 20, label, [...timeAxis(from, to, high), ...paths, ...crosses]);
}

function concurrency(model) {
  const points = model.head.concurrency;
  const [from, high] = [points[0][0], 110];
  const width = points.length > 1 ? points[1][0] - from : 1;
  const to = points.at(-1)[0] + width;
  const x = scale(from, to);
  const most = Math.max(...points.map(([, , max]) => max), 1);
  const y = (running) => high - (running / most) * (high - 12);
  const fill = points.map(([at, mean]) => `L${x(at).toFixed(1)} ${y(mean).toFixed(1)}H${x(at + width).toFixed(1)}`).join("");
  const line = points.map(([at, , max], n) => `${n ? "L" : "M"}${x(at).toFixed(1)} ${y(max).toFixed(1)}H${x(at + width).toFixed(1)}`).join("");
  return drawing(WIDE, high + 20, `At most ${most} rollouts at once`, [
    ...timeAxis(from, to, high),
    svg("path", { d: `M${x(from)} ${high}${fill}L${x(to)} ${high}Z`, class: "area" }),
    svg("path", { d: line, class: "most" }),
    svg("text", { x: 44, y: 16, class: "mark right", text: String(most) }),
    svg("text", { x: 44, y: high, class: "mark right", text: "0" })]);
}

function histogram(lengths) {
  const [low, top] = [lengths[0], lengths.at(-1)];
  const bars = lengths.length < 4 || low === top ? Math.min(lengths.length, 4) : BARS;
  const counts = new Array(bars).fill(0);
  for (const one of lengths) counts[Math.min(bars - 1, Math.floor(((one - low) / Math.max(top - low, 1)) * bars))] += 1;
  const [most, high, wide] = [Math.max(...counts), 130, (WIDE - 60) / bars];
  const rects = counts.flatMap((number, at) => {
    const tall = number ? Math.max((number / most) * (high - 20), 2) : 0;
    const x = 50 + at * wide;
    const parts = [svg("rect", { x: x + 1, y: high - tall, width: wide - 2, height: tall, class: "bar" })];
    if (number) parts.push(svg("text", { x: x + wide / 2, y: high - tall - 5, class: "mark middle", text: count(number) }));
    return parts;
  });
  const marks = low === top ? [svg("text", { x: 50, y: high + 15, class: "mark", text: duration(low) })]
    : [0, 0.25, 0.5, 0.75, 1].map((part) => svg("text", {
      x: 50 + part * (WIDE - 60), y: high + 15, class: part === 1 ? "mark right" : part ? "mark middle" : "mark", text: duration(low + part * (top - low)) }));
  return drawing(WIDE, high + 20, "Rollouts by duration", [
    svg("line", { x1: 50, x2: WIDE - 10, y1: high, y2: high, class: "rule" }), ...rects, ...marks]);
}

function quantile(sorted, part) {
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)];
}

/** A table with right-aligned numbers; cells are text or elements. */
export function table(headings, rows) {
  const cell = (tag, value, right) => element(tag, value instanceof Node
    ? { children: [value], cls: right ? "right" : "" } : { text: value, cls: right ? "right" : "" });
  const head = element("tr", { children: headings.map(([name, right]) => cell("th", name, right)) });
  const body = rows.map((row) => element("tr", { children: row.map((value, at) => cell("td", value, headings[at][1])) }));
  return element("div", { cls: "scroll", children: [element("table", { children: [
    element("thead", { children: [head] }), element("tbody", { children: body })] })] });
}

function stragglers(rollouts, open) {
  const longest = [...rollouts].sort((a, b) => b.length - a.length || (a.id < b.id ? -1 : 1));
  const rows = longest.slice(0, SHOWN).map((one) => {
    const name = element("button", { cls: "link", text: clean(one.id) });
    name.addEventListener("click", () => open(one.span));
    return [name, duration(one.length), one.outcome === "failure" ? "✕ failure" : one.outcome,
      count(one.spans), count(one.errors), clean(one.why ?? "–")];
  });
  const shown = table([["Rollout"], ["Duration", true], ["Outcome"], ["Spans", true], ["Errors", true], ["Why"]], rows);
  const left = rollouts.length - rows.length;
  if (left > 0) shown.append(element("p", { cls: "soft", text: `… ${plural(left, "shorter rollout")} not listed` }));
  return shown;
}

function causes(found) {
  return table([["What"], ["Which"], ["Slow with it", true], ["Slow without", true]], found.map((cause) => [
    cause.aspect, clean(cause.value), `${cause.slow_with} of ${cause.rollouts_with}`,
    `${cause.slow_without} of ${cause.rollouts_without}`]));
}
