/**
 * The flame view's lanes: a span lies below its parent, and no two in a lane overlap.
 *
 * Each trace is a block of lanes; blocks that do not overlap in time share theirs.
 */

/** Returns { lane, count, first, order }: `order` lists spans lane by lane, by start. */
export function lanes(model) {
  const lane = new Int32Array(model.count);
  const blocks = [];
  for (let first = 0; first < model.count;) {
    const trace = model.columns.trace_id[first];
    let after = first;
    while (after < model.count && model.columns.trace_id[after] === trace) after += 1;
    blocks.push(block(model, lane, first, after));
    first = after;
  }
  blocks.sort((a, b) => a.from - b.from || a.first - b.first);
  const free = [];
  let count = 0;
  for (const one of blocks) {
    let top = 0;
    for (let at = 0; at < top + one.height; at += 1) {
      if ((free[at] ?? -Infinity) > one.from) top = at + 1;
    }
    for (let at = top; at < top + one.height; at += 1) free[at] = one.to;
    for (let span = one.first; span < one.after; span += 1) lane[span] += top;
    count = Math.max(count, top + one.height);
  }
  const order = Int32Array.from(lane.keys()).sort(
    (a, b) => lane[a] - lane[b] || model.start[a] - model.start[b] || a - b);
  const first = new Int32Array(count + 1);
  for (const at of lane) first[at + 1] += 1;
  for (let at = 0; at < count; at += 1) first[at + 1] += first[at];
  return { lane, count, first, order };
}

function block(model, lane, first, after) {
  const ends = [];
  let [from, to] = [Infinity, -Infinity];
  for (let span = first; span < after; span += 1) {
    const above = model.parent[span];
    let at = above >= 0 ? lane[above] + 1 : 0;
    while ((ends[at] ?? -Infinity) > model.start[span]) at += 1;
    lane[span] = at;
    ends[at] = Math.max(ends[at] ?? -Infinity, model.end(span));
    from = Math.min(from, model.start[span]);
    to = Math.max(to, model.end(span));
  }
  for (let at = 0; at < ends.length; at += 1) ends[at] ??= -Infinity;
  return { first, after, from, to, height: ends.length };
}

/** The place in `order` of the first span of a lane that ends after a time. */
export function firstAfter(model, laid, lane, time) {
  let [low, high] = [laid.first[lane], laid.first[lane + 1]];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (model.end(laid.order[middle]) <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
