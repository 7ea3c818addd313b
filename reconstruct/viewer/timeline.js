/** The waterfall and the flame view: one canvas over a scrolled height, one frame a change. */

import { clean, count, duration, element, plural } from "./text.js";
import { firstAfter, lanes } from "./lanes.js";
import { Canvas, axis, colorOf } from "./paint.js";

const AXIS = 26;
const ROW = 24;
const LANE = 20;
const SMALL = "11.5px system-ui, sans-serif";
const MOST_CHILDREN = 4000;

export class Timeline {
  /** `app` has model, rows, palette, view, selected, hits and mode; it calls `draw`. */
  constructor(app) {
    this.app = app;
    this.canvas = new Canvas();
    this.canvas.node.setAttribute("aria-hidden", "true");
    this.tall = element("div", { cls: "tall", children: [this.canvas.node] });
    this.node = element("div", {
      cls: "stage", tabindex: "0", role: "application", children: [this.tall],
      "aria-label": "Timeline of spans. Arrow keys move along the tree, question mark lists all keys.",
    });
    this.drawn = 0;
    this.node.addEventListener("scroll", () => app.redraw());
  }

  get isFlame() { return this.app.mode === "flame"; }
  get left() { return this.isFlame ? 12 : Math.min(Math.max(this.canvas.width * 0.36, 170), 430); }
  get wide() { return Math.max(this.canvas.width - this.left - 14, 40); }
  get rowHeight() { return this.isFlame ? LANE : ROW; }
  get laid() { return (this._laid ??= lanes(this.app.model)); }
  get size() { return this.isFlame ? this.laid.count : this.app.rows.length; }

  /** Forget the lanes: times have changed. */
  moved() { this._laid = null; }

  x(time) {
    const { from, to } = this.app.view;
    return this.left + ((time - from) / (to - from)) * this.wide;
  }

  time(x) {
    const { from, to } = this.app.view;
    return from + ((x - this.left) / this.wide) * (to - from);
  }

  draw() {
    const { canvas, node } = this;
    const [width, height] = [node.clientWidth, node.clientHeight];
    if (!width || !height) return;
    canvas.resize(width, height);
    this.tall.style.height = `${Math.max(this.size * this.rowHeight + AXIS + 8, height)}px`;
    const { palette, view, model } = this.app;
    this.drawn = 0;
    canvas.clear(palette.back);
    axis(canvas, palette, {
      left: this.left, width: this.wide, top: 0, height, from: view.from, to: view.to, zero: model.from,
    });
    canvas.context.save();
    canvas.context.beginPath();
    canvas.context.rect(0, AXIS, width, height - AXIS);
    canvas.context.clip();
    if (this.isFlame) this._flame(height);
    else this._waterfall(height);
    canvas.context.restore();
    canvas.rect(0, AXIS - 1, width, 1, palette.line);
    if (!this.isFlame) canvas.rect(this.left - 9, 0, 1, height, palette.line);
    if (!this.size) canvas.label("No span lies on a critical path here.", 20, AXIS + 24, width, palette.soft);
  }

  /** First and last row in sight. */
  range(height = this.node.clientHeight) {
    const first = Math.floor(this.node.scrollTop / this.rowHeight);
    return [Math.max(first, 0), Math.min(this.size, first + Math.ceil((height - AXIS) / this.rowHeight) + 1)];
  }

  _waterfall(height) {
    const { app, canvas } = this;
    const [first, after] = this.range(height);
    for (let row = first; row < after; row += 1) {
      const { span, group } = app.rows.at(row);
      const y = AXIS + row * ROW - this.node.scrollTop;
      if (span === app.selected) canvas.rect(0, y, canvas.width, ROW, app.palette.choice);
      this._name(span, group, y);
      canvas.context.save();
      canvas.context.beginPath();
      canvas.context.rect(this.left - 4, y, this.wide + 18, ROW);
      canvas.context.clip();
      if (group) this._group(span, y);
      else this._bar(span, y);
      canvas.context.restore();
    }
  }

  _name(span, group, y) {
    const { app, canvas } = this;
    const { model, palette, rows } = app;
    const middle = y + ROW / 2 + 0.5;
    const most = Math.max(0, Math.floor((this.left - 150) / 14));
    const indent = 12 + Math.min(model.depth[span], most) * 14;
    const color = colorOf(palette, model.columns.service_name[span]);
    if (group || rows.hasChildren(span)) {
      this._arrow(indent, middle, !group && !rows.collapsed[span], palette.soft);
    }
    canvas.rect(indent + 13, middle - 5, 4, 10, color);
    let x = indent + 24;
    const room = () => this.left - 16 - x;
    if (model.isError(span) && !group) x += canvas.label("✕ ", x, middle, room(), palette.error);
    if (app.hits.has(span)) x += canvas.label("● ", x, middle, room(), palette.accent);
    const deep = model.depth[span] > most ? `(depth ${model.depth[span]}) ` : "";
    const words = group ? groupWords(model, rows, span) : clean(model.name(span));
    const bold = model.isCritical(span) && !group;
    const font = `${bold ? "600 " : ""}13px system-ui, sans-serif`;
    x += canvas.label(deep + words, x, middle, room(), palette.text, { font }) + 8;
    const below = rows.collapsed[span] && rows.hasChildren(span) && !group
      ? `  +${count(model.last[span] - span - 1)}` : "";
    const rollout = model.parent[span] < 0 && model.rollout(span) ? `${clean(model.rollout(span))} · ` : "";
    if (room() > 40) canvas.label(rollout + clean(model.service(span)) + below, x, middle, room(), palette.soft, { font: SMALL });
  }

  _arrow(x, y, isOpen, color) {
    const { context } = this.canvas;
    context.fillStyle = color;
    context.beginPath();
    if (isOpen) [[0, -2.5], [8, -2.5], [4, 3.5]].forEach(([dx, dy]) => context.lineTo(x + dx, y + dy));
    else [[1.5, -4], [7.5, 0], [1.5, 4]].forEach(([dx, dy]) => context.lineTo(x + dx, y + dy));
    context.fill();
  }

  /** A bar: solid where it is the span's own time, pale where its children cover it. */
  _bar(span, y) {
    const { app, canvas } = this;
    const { model, palette } = app;
    const [start, end] = [this.x(model.start[span]), this.x(model.end(span))];
    const [x, width] = this._cut(start, end);
    const color = colorOf(palette, model.columns.service_name[span]);
    const [top, high] = [y + 5, ROW - 11];
    if (end < this.left - 4 || start > canvas.width) {
      const [sign, at, right] = end < this.left ? ["‹", this.left, false] : ["›", canvas.width - 4, true];
      canvas.label(sign, at, y + ROW / 2, 20, palette.soft, { right });
      return;
    }
    let right = Math.max(end, x + width);
    if (model.hasOffsets && model.offsetOf(span)) {
      const other = this.x(model.written[span] - (model.isAligned ? 0 : model.offsetOf(span)));
      canvas.context.setLineDash([3, 3]);
      canvas.frame(other, top, Math.max(end - start, 2), high, palette.soft);
      canvas.context.setLineDash([]);
      right = Math.max(right, other + end - start);
      this.drawn += 1;
    }
    if (model.state(span) === "finished") {
      canvas.rect(x, top, width, high, color);
      this.drawn += 1;
      if (app.rows.hasChildren(span) && width > 3) this._children(span, top, high);
    } else {
      canvas.hatch(x, top, width, high, model.state(span) === "missing" ? palette.faint : color, palette.back);
      this.drawn += 1;
    }
    if (model.isError(span)) {
      canvas.rect(x - 2, top - 2, 4, high + 4, palette.error);
      canvas.frame(x, top, width, high, palette.error, 1.5);
    }
    this._path(span, top + high + 1);
    this._ticks(span, y);
    const unfinished = { open: " …", lost: " … lost", missing: " not in the logs" }[model.state(span)] ?? "";
    const words = (model.state(span) === "missing" ? "" : duration(model.length[span])) + unfinished;
    const room = canvas.measure(words, SMALL);
    const options = { font: SMALL };
    if (right + room + 10 < canvas.width) canvas.label(words, right + 6, y + ROW / 2, room + 1, palette.soft, options);
    else if (start - room - 8 > this.left) canvas.label(words, start - 6, y + ROW / 2, room + 1, palette.soft, { ...options, right: true });
    else if (canvas.width > room) {
      // On the bar, some of which is left to see on both sides: it goes on below the words.
      const at = Math.min(right, canvas.width) - room - 21;
      canvas.rect(at - 5, top, room + 10, high, palette.back);
      canvas.label(words, at, y + ROW / 2, room + 1, palette.text, options);
    }
  }

  /** Time that children cover, in stretches that are at least a pixel apart. */
  _children(span, top, high) {
    const { model, palette } = this.app;
    const { context } = this.canvas;
    context.globalAlpha = 0.62;
    let [painted, steps] = [this.x(model.start[span]), 0];
    const limit = Math.min(this.x(model.end(span)), this.canvas.width);
    for (let child = span + 1; child < model.last[span] && steps < MOST_CHILDREN; child = model.last[child]) {
      steps += 1;
      const from = Math.max(this.x(model.start[child]), painted, this.left - 6);
      const to = Math.min(this.x(model.end(child)), limit);
      if (to - from < 1) continue;
      context.fillStyle = palette.back;
      context.fillRect(from, top, to - from, high);
      this.drawn += 1;
      painted = to;
    }
    context.globalAlpha = 1;
  }

  _path(span, y) {
    const { model, palette } = this.app;
    let painted = -Infinity;
    for (let at = model.pathFirst[span]; at < model.pathFirst[span + 1]; at += 1) {
      const shift = model.isAligned ? model.offsetOf(span) : 0;
      const from = this.x(model.pathStart[at] - shift);
      const to = this.x(model.pathStart[at] + model.pathLength[at] - shift);
      if (to < painted + 1 || from > this.canvas.width) continue;
      this.canvas.rect(Math.max(from, this.left - 4), y, Math.max(to - Math.max(from, this.left - 4), 1), 3, palette.path);
      this.drawn += 1;
      painted = to;
    }
  }

  /** Log records: a tick each, taller and with a head from a warning on. */
  _ticks(span, y) {
    const { model, palette } = this.app;
    let painted = -Infinity;
    for (const log of model.logsOf(span)) {
      const x = Math.round(this.x(model.logTime[log] - (model.isAligned ? model.offsetOf(span) : 0)));
      if (x < painted + 2) continue;
      const severity = model.columns.logSeverity[log];
      const color = severity >= 17 ? palette.error : palette.text;
      this.canvas.rect(x, y + 1, 1.5, severity >= 13 ? 10 : 6, color);
      if (severity >= 13) this.canvas.rect(x - 2, y + 1, 5.5, 3, color);
      this.drawn += 1;
      painted = x;
    }
  }

  _group(first, y) {
    const { app, canvas } = this;
    const { model, palette } = app;
    const color = colorOf(palette, model.columns.service_name[first]);
    let [painted, sum, errors, size] = [-Infinity, 0, 0, 0];
    for (let span = first; span < app.rows.groupEnd[first]; span += 1) errors += model.isError(span) ? 1 : 0;
    for (let span = first; span < app.rows.groupEnd[first]; span = model.last[span]) {
      sum += model.length[span];
      size += 1;
      if (size > MOST_CHILDREN * 5) break;
      const [from, to] = [this.x(model.start[span]), this.x(model.end(span))];
      if (to < Math.max(painted + 1, this.left - 4) || from > canvas.width) continue;
      const [x, width] = this._cut(Math.max(from, painted + (painted > from ? 0.5 : 0)), to);
      canvas.rect(x, y + 5, width, ROW - 11, model.isError(span) ? palette.error : color);
      this.drawn += 1;
      painted = x + width;
    }
    const words = `${duration(sum)} in all${errors ? `, ✕ ${plural(errors, "error")}` : ""}`;
    const room = canvas.measure(words, SMALL);
    if (painted + room + 10 < canvas.width) {
      canvas.label(words, Math.max(painted, this.left) + 6, y + ROW / 2, room + 1, errors ? palette.error : palette.soft, { font: SMALL });
    }
  }

  /** Lanes of spans; what ends left of the last painted pixel of its lane is not painted again. */
  _flame(height) {
    const { app, canvas, laid } = this;
    const { model, palette, view } = app;
    const [first, after] = this.range(height);
    for (let lane = first; lane < after; lane += 1) {
      const y = AXIS + lane * LANE - this.node.scrollTop + 2;
      let painted = -Infinity;
      for (let at = firstAfter(model, laid, lane, view.from); at < laid.first[lane + 1]; at += 1) {
        const span = laid.order[at];
        if (model.start[span] > view.to) break;
        const [start, end] = [this.x(model.start[span]), this.x(model.end(span))];
        if (end < painted + 1) {
          // Jump to the first that reaches beyond the pixel.
          at = Math.max(at, firstAfter(model, laid, lane, this.time(painted + 1)) - 1);
          continue;
        }
        const [x, width] = this._cut(Math.max(start, painted), end);
        this._block(span, x, y, width, LANE - 4);
        painted = x + width;
      }
    }
    if (app.selected >= 0) {
      const span = app.selected;
      const y = AXIS + laid.lane[span] * LANE - this.node.scrollTop + 2;
      const [x, width] = this._cut(this.x(model.start[span]), this.x(model.end(span)));
      canvas.frame(x - 2, y - 2, width + 4, LANE, palette.text, 2);
    }
  }

  _block(span, x, y, width, high) {
    const { app, canvas } = this;
    const { model, palette } = app;
    const isDim = app.hits.size ? !app.hits.has(span) : app.rows.onlyCritical && !(model.onPath[span] & 1);
    canvas.context.globalAlpha = isDim ? 0.3 : 1;
    const gap = width > 4 ? 1 : 0;
    const color = colorOf(palette, model.columns.service_name[span]);
    if (model.state(span) === "finished") canvas.rect(x, y, width - gap, high, color);
    else canvas.hatch(x, y, width - gap, high, color, palette.back);
    this.drawn += 1;
    if (model.isError(span)) {
      canvas.rect(x, y, Math.min(4, width), high, palette.error);
      if (width > 8) canvas.frame(x, y, width - gap, high, palette.error, 1.5);
    }
    if (model.onPath[span] & 1 && width > 2) this._path(span, y + high - 2);
    if (width > 34) {
      const ink = model.state(span) === "finished" ? palette.back : palette.text;
      const mark = model.isError(span) ? "✕ " : "";
      if (model.state(span) !== "finished") {
        const taken = canvas.measure(mark + clean(model.name(span)), SMALL);
        canvas.rect(x + 4, y + 1, Math.min(taken + 6, width - 9), high - 2, palette.back);
      }
      canvas.label(mark + clean(model.name(span)), x + 7, y + high / 2, width - 12, ink, { font: SMALL });
    }
    canvas.context.globalAlpha = 1;
  }

  /** Left edge and width of a bar within sight, at least a pixel and a half. */
  _cut(from, to) {
    const left = Math.max(from, this.isFlame ? 0 : this.left - 6);
    return [left, Math.max(Math.min(to, this.canvas.width + 6) - left, 1.5)];
  }

  /** What lies under a point of the canvas: { span, row, onArrow, inNames }, or null. */
  hit(x, y) {
    if (y < AXIS) return null;
    const { model, rows } = this.app;
    const row = Math.floor((y - AXIS + this.node.scrollTop) / this.rowHeight);
    if (row < 0 || row >= this.size) return null;
    if (!this.isFlame) {
      const { span, group } = rows.at(row);
      const most = Math.max(0, Math.floor((this.left - 150) / 14));
      const indent = 12 + Math.min(model.depth[span], most) * 14;
      return { span, row, group, inNames: x < this.left - 8, onArrow: x > indent - 6 && x < indent + 12 };
    }
    const { laid } = this;
    const at = firstAfter(model, laid, row, this.time(x - 1));
    const span = laid.order[at];
    if (at >= laid.first[row + 1] || this.x(model.start[span]) > x + 1) return null;
    return { span, row, group: 0, inNames: false, onArrow: false };
  }

  /** Scroll so that a span's row is in sight. */
  show(span) {
    const row = this.isFlame ? this.laid.lane[span] : this.app.rows.rowOf(span);
    const [top, room] = [row * this.rowHeight, this.node.clientHeight - AXIS - this.rowHeight];
    this.tall.style.height = `${Math.max(this.size * this.rowHeight + AXIS + 8, this.node.clientHeight)}px`;
    if (top < this.node.scrollTop) this.node.scrollTop = Math.max(top - this.rowHeight, 0);
    else if (top > this.node.scrollTop + room) this.node.scrollTop = top - room + this.rowHeight;
  }
}

/** What a closed group is called: `× 37 HTTP POST → POST /get_weather`. */
export function groupWords(model, rows, first) {
  const below = rows.hasChildren(first) ? ` → ${clean(model.name(first + 1))}` : "";
  return `× ${count(rows.groupSize[first])} ${clean(model.name(first))}${below}`;
}
