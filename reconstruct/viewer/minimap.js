/** The whole time in one strip: how much went on, where errors are, which part is shown. */

import { element } from "./text.js";
import { Canvas } from "./paint.js";

export class Minimap {
  constructor(app) {
    this.app = app;
    this.canvas = new Canvas();
    this.node = element("div", { cls: "minimap", children: [this.canvas.node], "aria-hidden": "true" });
    this._counted = null;
  }

  moved() { this._counted = null; }

  _count(parts) {
    const { model } = this.app;
    const running = new Float64Array(parts + 1);
    const errors = new Uint8Array(parts);
    const part = (time) => Math.min(parts - 1, Math.floor(((time - model.from) / (model.to - model.from)) * parts));
    for (let span = 0; span < model.count; span += 1) {
      running[part(model.start[span])] += 1;
      running[part(model.end(span)) + 1] -= 1;
      if (model.isError(span)) errors[part(model.start[span])] = 1;
    }
    for (let at = 1; at < parts; at += 1) running[at] += running[at - 1];
    return { parts, running, errors, most: Math.max(...running, 1) };
  }

  draw() {
    const [width, height] = [this.node.clientWidth, this.node.clientHeight];
    if (!width || !height) return;
    const { model, palette, view } = this.app;
    const { canvas } = this;
    canvas.resize(width, height);
    if (this._counted?.parts !== width) this._counted = this._count(width);
    canvas.clear(palette.panel);
    const { running, errors, most } = this._counted;
    for (let x = 0; x < width; x += 1) {
      const high = (running[x] / most) * (height - 8);
      canvas.rect(x, height - high, 1, high, palette.faint);
      if (errors[x]) canvas.rect(x - 1, 0, 3, 4, palette.error);
    }
    const at = (time) => ((time - model.from) / (model.to - model.from)) * width;
    const [from, to] = [Math.max(at(view.from), 0), Math.min(at(view.to), width)];
    canvas.context.globalAlpha = 0.62;
    canvas.rect(0, 0, from, height, palette.back);
    canvas.rect(to, 0, width - to, height, palette.back);
    canvas.context.globalAlpha = 1;
    canvas.frame(from, 0, Math.max(to - from, 2), height, palette.accent, 2);
  }

  time(x) {
    const { model } = this.app;
    return model.from + (x / this.node.clientWidth) * (model.to - model.from);
  }
}
