/** What the keyboard and the pointer do; `KEYS` is also the help that `?` shows. */

import { element } from "./text.js";

const DRAG = 4;

export const KEYS = [
  ["↑ ↓", "Span above, span below"],
  ["← →", "Collapse or to the parent, expand or to the first child"],
  ["Enter", "Zoom to the selected span"],
  ["W S", "Zoom in, zoom out (or the wheel over the bars)"],
  ["A D", "To earlier, to later times (or drag)"],
  ["F", "Fit everything"],
  ["/", "Search names, services, ids, attributes and logs"],
  ["N, Shift N", "Next hit, hit before"],
  ["E, Shift E", "Next error, error before"],
  ["C", "Only what lies on a critical path"],
  ["X, Shift X", "Collapse all, expand all"],
  ["1 2 3 4", "Waterfall, flame view, overview, services"],
  ["Esc", "Leave the search, close this help"],
  ["?", "This help"],
];

/** Listen for keys on a root; `does` are the app's deeds. */
export function listen(root, does) {
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = event.target instanceof HTMLInputElement && event.target.type === "search";
    if (event.key === "Escape") {
      event.preventDefault(); // else the browser empties the search
      return does.leave();
    }
    if (isTyping) {
      if (event.key === "Enter") {
        event.preventDefault();
        does.hit(event.shiftKey ? -1 : 1);
      }
      return;
    }
    const isControl = event.target.closest?.("button, a, select, label, input");
    if (isControl && (event.key === "Enter" || event.key === " ")) return;
    const back = event.shiftKey ? -1 : 1;
    const deed = {
      ArrowDown: () => does.step(1), ArrowUp: () => does.step(-1),
      PageDown: () => does.step(20), PageUp: () => does.step(-20),
      Home: () => does.step(-Infinity), End: () => does.step(Infinity),
      ArrowLeft: () => does.close(), ArrowRight: () => does.open(),
      Enter: () => does.zoomToSelected(), w: () => does.zoom(0.7), s: () => does.zoom(1 / 0.7),
      a: () => does.pan(-0.2), d: () => does.pan(0.2), f: () => does.fit(),
      "/": () => does.focusSearch(), n: () => does.hit(back), e: () => does.error(back),
      c: () => does.toggleCritical(), x: () => does.collapse(back > 0), "?": () => does.toggleHelp(),
      1: () => does.show("waterfall"), 2: () => does.show("flame"),
      3: () => does.show("overview"), 4: () => does.show("services"),
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!deed) return;
    event.preventDefault();
    deed();
  });
}

/** Pointer and wheel on the timeline. */
export function point(timeline, does) {
  const { node } = timeline;
  const at = (event) => {
    const box = node.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  node.addEventListener("wheel", (event) => {
    const [x] = at(event);
    if (x < timeline.left - 8 && !timeline.isFlame) return;
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      does.pan((event.deltaX || event.deltaY) / 1000);
    } else {
      does.zoom(Math.exp(Math.max(-80, Math.min(event.deltaY, 80)) * 0.003), timeline.time(x));
    }
  }, { passive: false });
  let held = null;
  node.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const [x, y] = at(event);
    if (x > node.clientWidth) return;
    held = { x, y, moved: false };
  });
  node.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (!held) return does.hover(timeline.hit(x, y), event.clientX, event.clientY);
    if (!held.moved && Math.hypot(x - held.x, y - held.y) < DRAG) return;
    if (!held.moved) node.setPointerCapture(event.pointerId);
    held.moved = true;
    does.hover(null);
    does.pan(-(x - held.x) / timeline.wide);
    node.scrollTop -= y - held.y;
    [held.x, held.y] = [x, y];
  });
  node.addEventListener("pointerup", (event) => {
    const [x, y] = at(event);
    if (held && !held.moved) does.click(timeline.hit(x, y));
    held = null;
  });
  node.addEventListener("pointercancel", () => { held = null; });
  node.addEventListener("pointerleave", () => does.hover(null));
  node.addEventListener("dblclick", () => does.zoomToSelected());
}

/** Drag on the strip to choose a part of the time; click to go there. */
export function sweep(minimap, does) {
  let from = null;
  const time = (event) => minimap.time(event.clientX - minimap.node.getBoundingClientRect().left);
  minimap.node.addEventListener("pointerdown", (event) => {
    from = { x: event.clientX, time: time(event) };
    minimap.node.setPointerCapture(event.pointerId);
  });
  minimap.node.addEventListener("pointermove", (event) => {
    if (from && Math.abs(event.clientX - from.x) > DRAG) {
      const [a, b] = [from.time, time(event)].sort((one, other) => one - other);
      does.look(a, b);
    }
  });
  minimap.node.addEventListener("pointerup", (event) => {
    if (from && Math.abs(event.clientX - from.x) <= DRAG) does.center(from.time);
    from = null;
  });
}

/** The help as a dialog. */
export function help() {
  const rows = KEYS.flatMap(([key, deed]) => [element("dt", { text: key }), element("dd", { text: deed })]);
  return element("dialog", { cls: "help", "aria-label": "Keys", children: [
    element("h2", { text: "Keys" }), element("dl", { children: rows })] });
}
