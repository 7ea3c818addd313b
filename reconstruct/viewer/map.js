/** Who calls whom: services in layers from callers to callees, and the same as a table. */

import { clean, count, duration, element, plural } from "./text.js";
import { drawing, svg } from "./svg.js";
import { table } from "./overview.js";

const [BOX, TALL, ACROSS, DOWN] = [190, 48, 330, 104];

/** The service map as an element. */
export function serviceMap(model) {
  const { edges } = model.head;
  if (!edges.length) {
    return element("div", { cls: "page", children: [element("p", { cls: "empty", text: "No service calls another one in these spans." })] });
  }
  const rows = edges.map((edge) => [
    clean(edge.client), clean(edge.server), edge.kind, count(edge.calls),
    edge.failed_calls ? `✕ ${count(edge.failed_calls)}` : "0", count(edge.unfinished_calls ?? 0),
    length(edge.duration_p50_ns), length(edge.duration_p95_ns)]);
  return element("div", { cls: "page", children: [
    element("h2", { text: "Who calls whom" }),
    element("p", { cls: "soft", text: "In the traces shown. A thicker line is more calls; a broken red one with ✕ has failed calls." }),
    element("div", { cls: "scroll", children: [draw(edges)] }),
    table([["Client"], ["Server"], ["Kind"], ["Calls", true], ["Failed", true], ["Unfinished", true], ["Median", true], ["95 %", true]], rows)] });
}

function length(ns) { return ns === null || ns === undefined ? "–" : duration(Number(ns)); }

/** Layer of each service: one more than its callers', edges that close a cycle left aside. */
export function layers(edges) {
  const names = [...new Set(edges.flatMap((edge) => [edge.client, edge.server]))].sort();
  const next = new Map(names.map((name) => [name, []]));
  for (const { client, server } of edges) if (client !== server) next.get(client).push(server);
  const called = new Set(edges.filter((edge) => edge.client !== edge.server).map((edge) => edge.server));
  const [order, state, kept] = [[], new Map(), []];
  const visit = (name) => {
    state.set(name, "open");
    for (const to of next.get(name)) {
      if (state.get(to) === "open") continue;
      kept.push([name, to]);
      if (!state.has(to)) visit(to);
    }
    state.set(name, "done");
    order.push(name);
  };
  for (const name of [...names.filter((one) => !called.has(one)), ...names]) if (!state.has(name)) visit(name);
  const layer = new Map(names.map((name) => [name, 0]));
  for (const name of order.reverse()) {
    for (const [from, to] of kept) if (from === name) layer.set(to, Math.max(layer.get(to), layer.get(name) + 1));
  }
  return layer;
}

function draw(edges) {
  const pairs = new Map();
  for (const edge of edges) {
    const key = JSON.stringify([edge.client, edge.server]);
    const pair = pairs.get(key) ?? { client: edge.client, server: edge.server, calls: 0, failed: 0, p50: null };
    pair.calls += edge.calls;
    pair.failed += edge.failed_calls;
    pair.p50 ??= edge.duration_p50_ns;
    pairs.set(key, pair);
  }
  const columns = [];
  for (const [name, layer] of layers(edges)) (columns[layer] ??= []).push(name);
  const most = Math.max(...columns.map((column) => column.length));
  const places = new Map();
  columns.forEach((column, layer) => {
    if (layer) {
      const above = (name) => mean([...pairs.values()].filter((pair) => pair.server === name && places.has(pair.client)).map((pair) => places.get(pair.client).y));
      column.sort((a, b) => above(a) - above(b) || (a < b ? -1 : 1));
    }
    column.forEach((name, at) => places.set(name, {
      x: 12 + layer * ACROSS, y: 34 + ((most - column.length) / 2 + at) * DOWN }));
  });
  const height = 34 + most * DOWN;
  const called = new Map();
  for (const { server } of pairs.values()) called.set(server, (called.get(server) ?? 0) + 1);
  const lines = [...pairs.values()].flatMap((pair) => line(pair, places, called.get(pair.server) === 1));
  const boxes = [...places].flatMap(([name, { x, y }]) => [
    svg("rect", { x, y, width: BOX, height: TALL, rx: 8, class: "service" }),
    svg("text", { x: x + BOX / 2, y: y + TALL / 2 + 5, class: "middle name", text: short(clean(name)) }, [])]);
  const made = drawing(columns.length * ACROSS - (ACROSS - BOX) + 24, height, `${plural(places.size, "service")} and their calls`, [...lines, ...boxes]);
  made.style.maxWidth = `${columns.length * ACROSS}px`;
  return made;
}

function mean(values) { return values.length ? values.reduce((a, b) => a + b, 0) / values.length : 0; }

function short(name) { return name.length > 24 ? `${name.slice(0, 23)}…` : name; }

/** A curve from box to box; calls back to an earlier layer run below. */
function line(pair, places, isOnlyOne) {
  const [from, to] = [places.get(pair.client), places.get(pair.server)];
  const failed = pair.failed > 0;
  const thick = 1.2 + Math.min(Math.log10(pair.calls + 1), 4);
  const words = `${failed ? "✕ " : ""}${count(pair.calls)}${pair.p50 === null || pair.p50 === undefined ? "" : ` · ${duration(Number(pair.p50))}`}`;
  let [x1, y1, x2, y2] = [from.x + BOX, from.y + TALL / 2, to.x - 7, to.y + TALL / 2];
  let bend = `C${x1 + 70} ${y1} ${x2 - 70} ${y2} ${x2} ${y2}`;
  let middle = [(x1 + x2) / 2, (y1 + y2) / 2 - 8];
  let anchor = "middle";
  if (isOnlyOne && y1 !== y2) [middle, anchor] = [[x2 - 4, y1 < y2 ? y2 + 19 : y2 - 10], "right"];
  if (to.x - from.x > ACROSS && y1 === y2) {
    bend = `C${x1 + 90} ${y1 + 72} ${x2 - 90} ${y2 + 72} ${x2} ${y2}`;
    middle = [(x1 + x2) / 2, y1 + 46];
  }
  if (to.x <= from.x) {
    [x1, y1, x2, y2] = [from.x + BOX / 2, from.y + TALL, to.x + BOX / 2 + 24, to.y + TALL + 7];
    const low = Math.max(from.y, to.y) + TALL + 40;
    bend = `C${x1} ${low} ${x2} ${low} ${x2} ${y2}`;
    middle = [(x1 + x2) / 2, low - 4];
    return [svg("path", { d: `M${x1} ${y1}${bend}`, class: failed ? "call failed" : "call", "stroke-width": thick }),
      svg("path", { d: `M${x2 - 5} ${y2 + 2}L${x2} ${y2 - 6}L${x2 + 5} ${y2 + 2}Z`, class: failed ? "head failed" : "head" }),
      svg("text", { x: middle[0], y: middle[1], class: "mark middle halo", text: words })];
  }
  return [svg("path", { d: `M${x1} ${y1}${bend}`, class: failed ? "call failed" : "call", "stroke-width": thick }),
    svg("path", { d: `M${x2 - 2} ${y2 - 5}L${x2 + 6} ${y2}L${x2 - 2} ${y2 + 5}Z`, class: failed ? "head failed" : "head" }),
    svg("text", { x: middle[0], y: middle[1], class: `mark ${anchor} halo`, text: words })];
}
