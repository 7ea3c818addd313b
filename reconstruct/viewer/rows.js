/** The rows of the waterfall: spans in tree order, less what is collapsed or stands in a group. */

const REPEATS = 4;
const MANY = 2000;

export class Rows {
  /** Large inputs begin with only their roots open to view. */
  constructor(model) {
    this.model = model;
    this.collapsed = new Uint8Array(model.count);
    this.openGroups = new Set();
    this.onlyCritical = false;
    this.groupEnd = new Int32Array(model.count);
    this.groupSize = new Int32Array(model.count);
    this.groupOf = new Int32Array(model.count).fill(-1);
    this._group();
    if (model.count > MANY) {
      for (let span = 0; span < model.count; span += 1) {
        if (model.parent[span] < 0) this.collapsed[span] = 1;
      }
    }
    this.refresh();
  }

  /**
   * Find runs of siblings of one name and service, whose first children are of one too: calls of
   * one name go to different places. Roots are never grouped.
   */
  _group() {
    const { model } = this;
    const { name, service_name: service } = model.columns;
    const alike = (a, b) => {
      if (name[a] !== name[b] || service[a] !== service[b]) return false;
      if (this.hasChildren(a) !== this.hasChildren(b)) return false;
      return !this.hasChildren(a)
        || (name[a + 1] === name[b + 1] && service[a + 1] === service[b + 1]);
    };
    for (let above = 0; above < model.count; above += 1) {
      let child = above + 1;
      while (child < model.last[above]) {
        const first = child;
        let size = 0;
        while (child < model.last[above] && alike(first, child)) {
          child = model.last[child];
          size += 1;
        }
        if (size < REPEATS) continue;
        this.groupEnd[first] = child;
        this.groupSize[first] = size;
        for (let one = first; one < child; one = model.last[one]) this.groupOf[one] = first;
      }
    }
  }

  /** Work out the list anew: a span's number, or -1 - first for a closed group. */
  refresh() {
    const { model } = this;
    const list = [];
    let span = 0;
    while (span < model.count) {
      if (this.onlyCritical && !model.onPath[span]) {
        span = model.last[span];
      } else if (!this.onlyCritical && this.groupSize[span] && !this.openGroups.has(span)) {
        list.push(-1 - span);
        span = this.groupEnd[span];
      } else {
        list.push(span);
        span = this.collapsed[span] ? model.last[span] : span + 1;
      }
    }
    this.list = Int32Array.from(list);
  }

  get length() { return this.list.length; }

  /** What a row shows: its span (of a group the first) and how many more siblings stand in it. */
  at(row) {
    const item = this.list[row];
    return item >= 0 ? { span: item, group: 0 } : { span: -1 - item, group: this.groupSize[-1 - item] };
  }

  /** The row of a span, or of what hides it; -1 when only the critical path is shown without it. */
  rowOf(span) {
    let [low, high] = [0, this.list.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.at(middle).span <= span) low = middle;
      else high = middle - 1;
    }
    return this.list.length ? low : -1;
  }

  hasChildren(span) { return this.model.last[span] > span + 1; }

  /** Open everything above a span. */
  reveal(span) {
    let changed = false;
    for (let at = span; at >= 0; at = this.model.parent[at]) {
      const first = this.groupOf[at];
      if (first >= 0 && !this.openGroups.has(first)) {
        this.openGroups.add(first);
        changed = true;
      }
      if (at !== span && this.collapsed[at]) {
        this.collapsed[at] = 0;
        changed = true;
      }
    }
    if (changed) this.refresh();
  }

  /** Open a row; says whether something changed. */
  open(row) {
    const { span, group } = this.at(row);
    if (group) this.openGroups.add(span);
    else if (this.collapsed[span] && this.hasChildren(span)) this.collapsed[span] = 0;
    else return false;
    this.refresh();
    return true;
  }

  /** Close a span, else the opened group it stands in; says whether something changed. */
  close(row) {
    const { span, group } = this.at(row);
    if (group) return false;
    if (this.hasChildren(span) && !this.collapsed[span]) this.collapsed[span] = 1;
    else if (this.groupOf[span] >= 0 && this.openGroups.delete(this.groupOf[span])) { /* closed */ }
    else return false;
    this.refresh();
    return true;
  }

  setAll(isCollapsed) {
    this.collapsed.fill(isCollapsed ? 1 : 0);
    this.refresh();
  }

  setOnlyCritical(value) {
    this.onlyCritical = value;
    this.refresh();
  }
}
