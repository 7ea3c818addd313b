/** The panel beside the drawing: everything that is known about the selected span. */

import { clean, count, duration, element, instant, plural, spoken } from "./text.js";

const RECORDS = 200;

/** Fill the panel; `say` tells what was copied, `select` goes to another span. */
export function details(panel, model, span, { select, say }) {
  panel.replaceChildren();
  if (span < 0) {
    panel.append(element("p", { cls: "empty", text: "Select a span to see what is known about it: click it, or press the down arrow." }));
    return;
  }
  const extra = model.extra(span) ?? { events: [], links: [], message: "", dropped: 0 };
  const state = { open: "unfinished: still open at the end of the logs", lost: "unfinished: its process ended first", missing: "not in the logs; its children name it as their parent" }[model.state(span)];
  panel.append(element("h2", { text: clean(model.name(span)) }));
  panel.append(element("p", { cls: "soft", text: `${clean(model.service(span))} · ${model.kind(span)}` }));
  if (model.isError(span)) panel.append(element("p", { cls: "bad", text: `✕ Error${extra.message ? `: ${clean(extra.message, { lines: true })}` : ""}` }));
  if (state) panel.append(element("p", { cls: "note", text: state }));
  if (model.isOrphan(span)) panel.append(element("p", { cls: "note", text: "Its parent is not in the logs." }));
  if (model.isCycle(span)) panel.append(element("p", { cls: "note", text: "It is its own ancestor: ids in a circle." }));
  panel.append(facts(times(model, span)));
  panel.append(group("Attributes", facts(model.attributes(span).map(([key, value]) => [key, spoken(value)]))));
  if (extra.dropped) panel.append(element("p", { cls: "note", text: `${plural(extra.dropped, "attribute")} dropped by a limit of the writer` }));
  if (extra.events.length) panel.append(group("Events", ...some(extra.events, (event) => record(
    event.name, event.after === null ? "" : `+${duration(Number(event.after))}`, event.attributes))));
  const logs = model.logsOf(span);
  if (logs.length) panel.append(group("Logs", ...some([...logs], (number) => {
    const log = model.log(number);
    const after = Number(model.logExact(number) - model.startExact(span));
    return record(spoken(log.body), `${log.severity} +${duration(after)} ${log.logger}`, log.attributes);
  })));
  if (extra.links.length) panel.append(group("Links", ...some(extra.links, (link) => linked(model, link, select))));
  panel.append(group("Ids", ids(model, span, say)));
}

function times(model, span) {
  const whole = model.lengthExact(span);
  const own = model.selfExact(span);
  const critical = model.critical(span);
  const isKnown = model.state(span) === "finished";
  const share = (part) => model.length[span] ? ` (${Math.round((100 * part) / model.length[span])} %)` : "";
  const shown = [
    [isKnown ? "Duration" : "Seen for", `${duration(Number(whole))} = ${count(whole)} ns`],
    ["Self time", own === null ? "–" : `${duration(Number(own))}${share(Number(own))}`],
    ["Critical path", critical ? `${duration(critical)}${share(critical)}` : "not on it"],
    ["Start", instant(model.t0 + model.startExact(span))],
    ["After the first", duration(model.written[span] - model.from)]];
  if (model.offsetOf(span)) shown.push(["Clock", `${duration(Math.abs(model.offsetOf(span)))} ${model.offsetOf(span) > 0 ? "ahead" : "behind"} (estimate); ${model.isAligned ? "taken off in the drawing" : "not taken off"}`]);
  return shown;
}

function facts(pairs) {
  if (!pairs.length) return element("p", { cls: "soft", text: "none" });
  return element("dl", { cls: "facts", children: pairs.flatMap(([key, value]) => [
    element("dt", { text: clean(key) }), element("dd", { text: clean(value, { lines: true }) })]) });
}

function group(title, ...content) {
  return element("section", { children: [element("h3", { text: title }), ...content] });
}

function some(list, show) {
  const shown = list.slice(0, RECORDS).map(show);
  if (list.length > RECORDS) shown.push(element("p", { cls: "soft", text: `… ${count(list.length - RECORDS)} more not listed` }));
  return shown;
}

function record(title, when, attributes) {
  const pairs = Object.entries(attributes ?? {}).map(([key, value]) => [key, spoken(value)]);
  return element("div", { cls: "record", children: [
    element("p", { children: [element("span", { cls: "soft", text: `${clean(when)} ` }), element("span", { text: clean(title, { lines: true }) })] }),
    ...(pairs.length ? [facts(pairs)] : [])] });
}

function linked(model, link, select) {
  const span = model.find(link.span_id ?? "");
  const made = record(`trace ${link.trace_id}, span ${link.span_id}`, "", link.attributes);
  if (span >= 0) {
    const go = element("button", { cls: "link", text: "go to it" });
    go.addEventListener("click", () => select(span));
    made.append(go);
  }
  return made;
}

function ids(model, span, say) {
  const rollout = model.rollout(span);
  const shown = [
    ["Span", model.id(span)], ["Trace", model.trace(span)], ["Rollout", rollout],
    ["Instance", model.instance(span)], ["Line", model.file(span) ? `${model.file(span)}:${model.line(span)}` : ""],
    ["Show it", `reconstruct show ${quoted(rollout || model.trace(span))} logs/`]];
  return element("dl", { cls: "facts", children: shown.filter(([, value]) => value).flatMap(([key, value]) => {
    const copy = element("button", { cls: "copy", text: "copy", "aria-label": `Copy ${key}` });
    copy.addEventListener("click", () => copied(value, say));
    return [element("dt", { text: key }), element("dd", { children: [element("code", { text: clean(value) }), copy] })];
  }) });
}

/** A word for a POSIX shell. */
function quoted(word) { return /^[\w.:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`; }

async function copied(text, say) {
  try {
    await navigator.clipboard.writeText(text);
    say("copied");
  } catch {
    say("the browser does not let this page copy; select the text instead");
  }
}
