/**
 * The viewer: `mount(root, payload)` fills an element with the views of a payload.
 *
 * `payload` is base64 of what `payload.py` packs. Resolves to the mounted App once the first frame
 * is drawn; `root.state()` says what is shown, in plain values.
 */

import { clean, count, duration, element, plural } from "./text.js";
import { decode } from "./model.js";
import { Rows } from "./rows.js";
import { colorOf, colors } from "./paint.js";
import { Timeline, groupWords } from "./timeline.js";
import { Minimap } from "./minimap.js";
import { overview } from "./overview.js";
import { serviceMap } from "./map.js";
import { details } from "./details.js";
import { read, write } from "./place.js";
import { help, listen, point, sweep } from "./keys.js";

const VIEWS = { waterfall: "Waterfall", flame: "Flame", overview: "Overview", services: "Services" };
const NAMED = 12;
const FRAMES = 400;

export async function mount(root, payload) {
  try {
    const app = new App(root, await decode(payload));
    app.start();
    return app;
  } catch (error) {
    root.replaceChildren(element("p", { cls: "empty", role: "alert", text: `This page cannot be shown: ${error.message}` }));
    throw error;
  }
}

export class App {
  constructor(root, model) {
    Object.assign(this, { root, model, rows: new Rows(model), mode: "waterfall", selected: -1 });
    Object.assign(this, { hits: new Set(), hitList: [], q: "", pages: {}, frames: [] });
    this.view = this._whole();
    this.timeline = new Timeline(this);
    this.minimap = new Minimap(this);
    this._build();
    listen(root, this);
    point(this.timeline, this);
    sweep(this.minimap, this);
  }

  start() {
    this.theme();
    this._go(read(location.hash, Object.keys(VIEWS)));
    addEventListener("popstate", () => this._go(read(location.hash, Object.keys(VIEWS))));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.theme());
    new ResizeObserver(() => this.redraw()).observe(this.timeline.node);
    addEventListener("beforeprint", () => this.draw());
    this.timeline.node.focus({ preventScroll: true });
    this.draw();
    this.root.dataset.ready = "1";
  }

  _whole() {
    const pad = (this.model.to - this.model.from) * 0.01;
    return { from: this.model.from - pad, to: this.model.to + pad };
  }

  _build() {
    const { model } = this;
    this.tabs = Object.entries(VIEWS).map(([view, name]) => {
      const tab = element("button", { text: name, role: "tab", "aria-selected": "false" });
      tab.addEventListener("click", () => this.show(view));
      return [view, tab];
    });
    this.search = element("input", { type: "search", placeholder: "Search   /", "aria-label": "Search spans" });
    this.search.addEventListener("input", () => {
      clearTimeout(this._typing);
      this._typing = setTimeout(() => this.seek(this.search.value), 120);
    });
    this.found = element("span", { cls: "soft found", role: "status" });
    this.critical = this._toggle("Critical path", "Only what lies on a critical path (C)", () => this.toggleCritical());
    this.clocks = this._toggle("Align clocks", "Take estimated clock offsets off", () => this.toggleClocks());
    const look = this._toggle("◐", "Dark or light", () => this.toggleTheme());
    const keys = this._toggle("?", "Keys", () => this.toggleHelp());
    look.setAttribute("aria-label", "Switch between dark and light");
    keys.setAttribute("aria-label", "Show the keys");
    this.live = element("p", { cls: "quiet", "aria-live": "polite" });
    this.list = element("ol", { cls: "quiet", "aria-label": "Spans in sight" });
    this.panel = element("aside", { "aria-label": "Selected span", tabindex: "0" });
    this.tip = element("div", { cls: "tip", role: "tooltip", hidden: "" });
    this.help = help();
    this.page = element("main", { cls: "paged", tabindex: "0", hidden: "" });
    const words = `${plural(model.count, "span")}, ${plural(model.head.trace_id.length, "trace")}, ${duration(model.to - model.from)}`;
    const title = element("h1", { children: [element("span", { text: clean(model.head.title) }), element("small", { text: words })] });
    const bar = element("header", { children: [title,
      element("div", { cls: "tabs", role: "tablist", children: this.tabs.map(([, tab]) => tab) }),
      element("div", { cls: "tools", children: [this.search, this.found, this.critical, ...(model.hasOffsets ? [this.clocks] : []), look, keys] })] });
    this.split = element("main", { cls: "split", children: [this.timeline.node, this.panel] });
    this.strip = element("div", { cls: "strip", children: [this.minimap.node] });
    this.legend = element("footer", { "aria-label": "Legend" });
    this.notes = element("div", { cls: "notes", role: "note", children: model.head.notes.map((note) => element("p", { text: `… ${clean(note)}` })) });
    this.root.replaceChildren(bar, this.notes, this.strip, this.split, this.page, this.legend, this.live, this.list, this.tip, this.help);
    this.root.state = () => this.state();
  }

  _toggle(text, title, deed) {
    const made = element("button", { text, title, "aria-pressed": "false" });
    made.addEventListener("click", deed);
    return made;
  }

  _legend() {
    const { model, palette } = this;
    const services = model.head.service_name.map((name, at) => [name, at]).filter(([name]) => name !== "(missing)");
    const names = services.slice(0, NAMED).map(([name, at]) => {
      const mark = element("i");
      mark.style.background = colorOf(palette, at);
      return element("span", { children: [mark, element("span", { text: clean(name) })] });
    });
    const left = services.length - names.length;
    if (left > 0) names.push(element("span", { text: `… ${plural(left, "more service")}` }));
    const signs = [["own", "own time"], ["covered", "in children"], ["hatched", "unfinished"], ["failed", "✕ error"], ["path", "critical path"], ["tick", "log record"]];
    if (model.hasOffsets) signs.push(["moved", this.model.isAligned ? "before alignment" : "if clocks agreed"]);
    const shown = signs.map(([cls, name]) => element("span", { children: [element("i", { cls }), element("span", { text: name })] }));
    this.legend.replaceChildren(element("div", { children: names }), element("div", { children: shown }));
  }

  /** What is shown, in plain values. */
  state() {
    const { model, selected, view } = this;
    return {
      view: this.mode, from: view.from, to: view.to, rows: this.timeline.size, q: this.q, hits: this.hitList.length,
      selected: selected < 0 ? null : { id: model.id(selected), name: model.name(selected), start: String(model.t0 + model.startExact(selected)), length: String(model.lengthExact(selected)) },
      isCritical: this.rows.onlyCritical, isAligned: Boolean(model.isAligned), isDark: this.isDark,
      spans: model.count, drawn: this.timeline.drawn, frames: this.frames.slice(), notes: model.head.notes,
    };
  }

  theme() {
    const asked = this.root.dataset.theme;
    this.isDark = asked ? asked === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    this.root.classList.toggle("dark", this.isDark);
    document.documentElement.style.colorScheme = this.isDark ? "dark" : "light";
    this.palette = colors(this.root);
    this._legend();
    this.redraw();
  }

  toggleTheme() {
    this.root.dataset.theme = this.isDark ? "light" : "dark";
    this.theme();
  }

  redraw() {
    if (this._asked) return;
    this._asked = requestAnimationFrame(() => {
      this._asked = 0;
      this.draw();
    });
  }

  draw() {
    const begun = performance.now();
    if (this.mode === "waterfall" || this.mode === "flame") {
      this.timeline.draw();
      this.minimap.draw();
    }
    if (this.frames.push(performance.now() - begun) > FRAMES) this.frames.shift();
    clearTimeout(this._listing);
    this._listing = setTimeout(() => this._read(), 150);
  }

  /** The rows in sight as a list for those who cannot see the drawing. */
  _read() {
    if (this.mode !== "waterfall") return this.list.replaceChildren();
    const [first, after] = this.timeline.range();
    const items = [];
    for (let row = first; row < after; row += 1) items.push(element("li", { text: this._words(row) }));
    this.list.replaceChildren(...items);
  }

  _words(row) {
    const { model } = this;
    const { span, group } = this.rows.at(row);
    const state = model.state(span) === "finished" ? "" : `, ${model.state(span)}`;
    return `${group ? `${count(group)} times ` : ""}${clean(model.name(span))}, ${clean(model.service(span))}, ${duration(model.length[span])}${state}${model.isError(span) ? ", error" : ""}${model.isCritical(span) ? ", on the critical path" : ""}, level ${model.depth[span] + 1}`;
  }

  show(view) {
    if (view === this.mode) return;
    this._show(view);
    this._keep(true);
  }

  _show(view) {
    this.mode = view;
    const isDrawn = view === "waterfall" || view === "flame";
    for (const [name, tab] of this.tabs) tab.setAttribute("aria-selected", String(name === view));
    for (const node of [this.split, this.strip, this.legend]) node.hidden = !isDrawn;
    this.page.hidden = isDrawn;
    if (!isDrawn) {
      this.pages[view] ??= view === "overview" ? overview(this.model, (span) => this.goTo(span)) : serviceMap(this.model);
      this.page.replaceChildren(this.pages[view]);
      this.page.focus({ preventScroll: true });
      return;
    }
    this.timeline.node.scrollTop = 0;
    if (this.selected >= 0) this.timeline.show(this.selected);
    this.timeline.node.focus({ preventScroll: true });
    this.redraw();
  }

  /** Select a span and show it: opened, in sight, within the time shown. */
  select(span, { keep = true } = {}) {
    this.selected = span;
    if (span >= 0) {
      if (this.rows.onlyCritical && !this.model.onPath[span]) this._critical(false);
      this.rows.reveal(span);
      const { model, view } = this;
      if (model.end(span) < view.from || model.start[span] > view.to) this.center(model.start[span] + model.length[span] / 2);
      this.timeline.show(span);
      this.live.textContent = this.rows.rowOf(span) >= 0 ? this._words(this.rows.rowOf(span)) : "";
    }
    details(this.panel, this.model, span, { select: (other) => this.select(other), say: (words) => { this.found.textContent = words; } });
    if (keep) this._keep(true);
    this.redraw();
  }

  /** From another view to a span in the waterfall, with its time filling the view. */
  goTo(span) {
    if (span < 0) return;
    this.rows.collapsed[span] = 0;
    this.rows.refresh();
    this._show("waterfall");
    this.select(span, { keep: false });
    this.zoomToSelected();
    this._keep(true);
  }

  step(by) {
    const { rows, timeline } = this;
    if (!rows.length || (this.mode !== "waterfall" && this.mode !== "flame")) return;
    const at = this.selected < 0 ? (by > 0 ? timeline.range()[0] - 1 : 0) : rows.rowOf(this.selected);
    const row = Math.max(0, Math.min(rows.length - 1, at + by));
    this._pick(row);
  }

  /** Select what a row shows without opening the group it stands for. */
  _pick(row) {
    const { span, group } = this.rows.at(row);
    if (!group) return this.select(span);
    this.selected = span;
    this.timeline.show(span);
    this.live.textContent = this._words(row);
    details(this.panel, this.model, span, { select: (other) => this.select(other), say: () => {} });
    this._keep(true);
    return this.redraw();
  }

  open() {
    if (this.selected < 0) return this.step(1);
    const row = this.rows.rowOf(this.selected);
    if (this.rows.open(row)) return this.redraw();
    if (this.rows.hasChildren(this.selected) && row + 1 < this.rows.length) this._pick(row + 1);
    return undefined;
  }

  close() {
    if (this.selected < 0) return;
    const row = this.rows.rowOf(this.selected);
    const { groupOf } = this.rows;
    if (this.rows.close(row)) {
      const first = groupOf[this.selected];
      if (first >= 0 && !this.rows.openGroups.has(first)) this.selected = first;
      this.redraw();
    } else if (this.model.parent[this.selected] >= 0) {
      this.select(this.model.parent[this.selected]);
    }
  }

  collapse(isCollapsed) {
    this.rows.setAll(isCollapsed);
    if (this.selected >= 0) this.timeline.show(this.selected);
    this.redraw();
  }

  look(from, to) {
    const whole = this._whole();
    const most = whole.to - whole.from;
    const length = Math.max(Math.min(to - from, most), 10);
    const start = Math.max(whole.from, Math.min(from, whole.to - length));
    this.view = { from: start, to: start + length };
    this._keep(false);
    this.redraw();
  }

  zoom(factor, around = (this.view.from + this.view.to) / 2) {
    const { from, to } = this.view;
    this.look(around - (around - from) * factor, around + (to - around) * factor);
  }

  pan(part) {
    const by = (this.view.to - this.view.from) * part;
    this.look(this.view.from + by, this.view.to + by);
  }

  center(time) {
    const half = (this.view.to - this.view.from) / 2;
    this.look(time - half, time + half);
  }

  fit() {
    const { from, to } = this._whole();
    this.look(from, to);
  }

  zoomToSelected() {
    if (this.selected < 0) return;
    const start = this.model.start[this.selected];
    const length = Math.max(this.model.length[this.selected], 10);
    this.look(start - length * 0.05, start + length * 1.12);
  }

  focusSearch() {
    if (this.mode !== "waterfall" && this.mode !== "flame") this.show("waterfall");
    this.search.focus();
    this.search.select();
  }

  seek(words, { keep = true } = {}) {
    this.q = words.trim();
    this.hitList = this.q ? this.model.search(this.q) : [];
    this.hits = new Set(this.hitList);
    this.found.textContent = this.q ? (this.hitList.length ? plural(this.hitList.length, "hit") : "no span has this") : "";
    if (keep) this._keep(false);
    this.redraw();
  }

  hit(by) {
    if (this.search.value.trim() !== this.q) this.seek(this.search.value);
    this._next(this.hitList, by, "hit");
  }

  error(by) {
    this.errors ??= Array.from({ length: this.model.count }, (_, span) => span).filter((span) => this.model.isError(span));
    if (!this.errors.length) this.found.textContent = "no errors";
    this._next(this.errors, by, "error");
  }

  _next(list, by, word) {
    if (!list.length) return;
    let at = by > 0 ? list.findIndex((span) => span > this.selected) : list.findLastIndex((span) => span < this.selected);
    if (at < 0) at = by > 0 ? 0 : list.length - 1;
    this.found.textContent = `${word} ${count(at + 1)} of ${count(list.length)}`;
    this.select(list[at]);
  }

  _critical(isOn) {
    this.rows.setOnlyCritical(isOn);
    this.critical.setAttribute("aria-pressed", String(isOn));
  }

  toggleCritical() {
    this._critical(!this.rows.onlyCritical);
    this.timeline.node.scrollTop = 0;
    if (this.selected >= 0) this.timeline.show(this.selected);
    this._keep(true);
    this.redraw();
  }

  _align(isOn) {
    this.model.align(isOn);
    this.clocks.setAttribute("aria-pressed", String(isOn));
    this.timeline.moved();
    this.minimap.moved();
    this._legend();
    this.select(this.selected, { keep: false });
  }

  toggleClocks() {
    this._align(!this.model.isAligned);
    this._keep(true);
  }

  toggleHelp() {
    if (this.help.open) this.help.close();
    else this.help.showModal();
  }

  leave() {
    if (this.help.open) this.help.close();
    this.tip.hidden = true;
    this.timeline.node.focus({ preventScroll: true });
  }

  click(hit) {
    this.timeline.node.focus({ preventScroll: true });
    if (!hit) return;
    if (hit.inNames && hit.onArrow && this.rows.open(hit.row)) return void this.redraw();
    if (hit.inNames && hit.onArrow && this.rows.close(hit.row)) return void this.redraw();
    if (this.isWaterfall) this._pick(hit.row);
    else this.select(hit.span);
  }

  get isWaterfall() { return this.mode === "waterfall"; }

  hover(hit, x, y) {
    if (hit?.span === this._hovered && !this.tip.hidden && hit) return void this._moveTip(x, y);
    this._hovered = hit?.span;
    this.tip.hidden = !hit;
    if (!hit) return;
    const { model } = this;
    const { span, group } = hit;
    const lines = [
      [group ? groupWords(model, this.rows, span) : clean(model.name(span)), "strong"],
      [`${clean(model.service(span))} · ${model.state(span) === "finished" ? duration(model.length[span]) : model.state(span)}${model.isError(span) ? " · ✕ error" : ""}`, "soft"]];
    const critical = model.critical(span);
    if (critical) lines.push([`${duration(critical)} on the critical path`, "soft"]);
    const logs = model.logsOf(span).length;
    if (logs) lines.push([plural(logs, "log record"), "soft"]);
    if (group) lines.push(["first of them; → or a click on the arrow lists all", "soft"]);
    this.tip.replaceChildren(...lines.map(([text, cls]) => element("p", { text, cls })));
    this._moveTip(x, y);
  }

  _moveTip(x, y) {
    const { offsetWidth: wide, offsetHeight: high } = this.tip;
    this.tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - wide - 8))}px`;
    this.tip.style.top = `${y + high + 30 > innerHeight ? y - high - 12 : y + 18}px`;
  }

  /** Write the state into the address; a step of the history where one went somewhere. */
  _keep(isStep) {
    const { from, to } = this.view;
    const whole = this._whole();
    const hash = write({
      view: this.mode, span: this.selected < 0 ? null : this.model.id(this.selected), from, to, q: this.q,
      isCritical: this.rows.onlyCritical, isAligned: this.model.isAligned,
      isWhole: from <= whole.from && to >= whole.to - 1 });
    clearTimeout(this._keeping);
    if (isStep && hash !== location.hash) history.pushState(null, "", hash);
    else this._keeping = setTimeout(() => history.replaceState(null, "", hash), 200);
  }

  /** Go to the state of an address. */
  _go(place) {
    clearTimeout(this._keeping);
    if (Boolean(place.isAligned) !== Boolean(this.model.isAligned) && this.model.hasOffsets) this._align(place.isAligned);
    if (place.isCritical !== this.rows.onlyCritical) this._critical(place.isCritical);
    this.view = place.from === undefined ? this._whole() : { from: place.from, to: place.to };
    this.search.value = place.q ?? "";
    if (this.q !== this.search.value) this.seek(this.search.value, { keep: false });
    this._show(place.view ?? "waterfall");
    const span = place.span ? this.model.find(place.span) : -1;
    this.select(span, { keep: false });
    if (place.span && span < 0) this.found.textContent = `no span ${place.span} here`;
    clearTimeout(this._keeping);
  }
}
