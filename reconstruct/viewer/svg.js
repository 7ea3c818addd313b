/** Small drawings made of a few SVG elements: charts of the overview, the service map. */

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, children = []) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") made.textContent = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** A drawing with a name for those who cannot see it. */
export function drawing(width, height, label, children) {
  const title = svg("title", { text: label });
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "drawing" }, [title, ...children]);
}
