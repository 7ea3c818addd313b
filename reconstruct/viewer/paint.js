/** Strokes on a canvas that all drawings share: colours of the theme, bars, axes, cut labels. */

import { duration } from "./text.js";

const LIGHT = ["#3b6fb6", "#1f7a66", "#a4652a", "#7a56b3", "#5d7f1f", "#b04a7d", "#1f7590", "#8a7321", "#5661c4", "#8b5a4a"];
const DARK = ["#7aa7e8", "#5cc3a8", "#dfa06a", "#b597ea", "#a3c765", "#e58ab8", "#68c3de", "#cdb45c", "#98a2f2", "#c9988a"];
const NAMES = ["text", "soft", "faint", "line", "back", "panel", "error", "path", "accent", "choice"];

/** The theme's colours as the style sheet has them at the moment. */
export function colors(root) {
  const style = getComputedStyle(root);
  const found = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  found.services = style.getPropertyValue("--dark").trim() === "1" ? DARK : LIGHT;
  return found;
}

/** The colour of the nth service; they repeat after ten, names do not. */
export function colorOf(palette, service) {
  return palette.services[service % palette.services.length];
}

/** A canvas at the screen's own resolution. */
export class Canvas {
  constructor() {
    this.node = document.createElement("canvas");
    this.context = this.node.getContext("2d");
    this._patterns = new Map();
    this._widths = new Map();
  }

  resize(width, height) {
    const ratio = window.devicePixelRatio || 1;
    [this.width, this.height] = [width, height];
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.node.width !== wide || this.node.height !== high) {
      [this.node.width, this.node.height] = [wide, high];
      this.node.style.width = `${width}px`;
      this.node.style.height = `${height}px`;
    }
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  clear(color) { this.rect(0, 0, this.width, this.height, color); }

  rect(x, y, width, height, color) {
    this.context.fillStyle = color;
    this.context.fillRect(x, y, width, height);
  }

  /** Diagonal stripes: what has no end. */
  hatch(x, y, width, height, color, back) {
    const key = color + back;
    if (!this._patterns.has(key)) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 8;
      const draw = tile.getContext("2d");
      draw.fillStyle = back;
      draw.fillRect(0, 0, 8, 8);
      draw.strokeStyle = color;
      draw.lineWidth = 2.5;
      draw.beginPath();
      for (const from of [-8, 0, 8]) {
        draw.moveTo(from - 1, 9);
        draw.lineTo(from + 9, -1);
      }
      draw.stroke();
      this._patterns.set(key, this.context.createPattern(tile, "repeat"));
    }
    this.rect(x, y, width, height, this._patterns.get(key));
    this.frame(x, y, width, height, color);
  }

  frame(x, y, width, height, color, thick = 1) {
    this.context.strokeStyle = color;
    this.context.lineWidth = thick;
    this.context.strokeRect(x + thick / 2, y + thick / 2, Math.max(width - thick, 0.5), height - thick);
  }

  /** Text cut to a width with an ellipsis; returns the width it took. */
  label(text, x, y, room, color, { font = "13px system-ui, sans-serif", right = false } = {}) {
    const { context } = this;
    context.font = font;
    context.fillStyle = color;
    context.textBaseline = "middle";
    let shown = text.length > 400 ? `${text.slice(0, 399)}…` : text;
    let width = this.measure(shown, font);
    if (width > room) {
      let [low, high] = [0, shown.length];
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (this.measure(`${shown.slice(0, middle)}…`, font) <= room) low = middle;
        else high = middle - 1;
      }
      if (!low) return 0;
      shown = `${shown.slice(0, low)}…`;
      width = this.measure(shown, font);
    }
    context.fillText(shown, right ? x - width : x, y);
    return width;
  }

  measure(text, font = "13px system-ui, sans-serif") {
    const key = font + text;
    let width = this._widths.get(key);
    if (width === undefined) {
      this.context.font = font;
      width = this.context.measureText(text).width;
      if (this._widths.size > 20_000) this._widths.clear();
      this._widths.set(key, width);
    }
    return width;
  }
}

/** Round steps of time for about so many marks: 1, 2 or 5 of a power of ten, ns. */
export function step(length, marks) {
  const rough = Math.max(length / Math.max(marks, 1), 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
}

/** Marks of time along the top, and lines down from them; labels count from `zero`. */
export function axis(canvas, palette, { left, width, top, height, from, to, zero }) {
  const size = step(to - from, width / 90);
  for (let mark = Math.ceil((from - zero) / size) * size; mark + zero <= to; mark += size) {
    const x = left + ((mark + zero - from) / (to - from)) * width;
    canvas.rect(Math.round(x), top, 1, height, palette.line);
    if (x + 60 < left + width) {
      canvas.label(mark ? duration(mark) : "0", x + 5, top + 13, 100, palette.soft, { font: "11px system-ui, sans-serif" });
    }
  }
}
