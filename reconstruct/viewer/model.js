/**
 * The payload as columns: typed arrays of one entry a span, text only where it is asked for.
 *
 * Times are float64 ns after t0 for drawing; `startExact` and `lengthExact` give BigInt ns.
 */

import { spoken } from "./text.js";

const ARRAYS = { u8: Uint8Array, u32: Uint32Array, i32: Int32Array };
const NO_TIME = -(2 ** 31);
const HIGH = 2 ** 32;

/** Unpack base64 of gzip; returns a promise of the model. */
export async function decode(text) {
  const packed = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return model(await new Response(stream).arrayBuffer());
}

/** The model of unpacked bytes. */
export function model(bytes) {
  const reader = new TextDecoder();
  const size = new DataView(bytes).getUint32(0, true);
  const head = JSON.parse(reader.decode(new Uint8Array(bytes, 4, size)));
  const columns = {};
  let at = 4 + size;
  for (const [name, kind, length] of head.columns) {
    columns[name] = kind === "text"
      ? new Uint8Array(bytes, at, length)
      : new ARRAYS[kind](bytes.slice(at, at + length));
    at += length;
  }
  const lines = (name) => {
    const all = reader.decode(columns[name]);
    return all ? all.split("\n") : [];
  };
  return new Model(head, columns, lines);
}

class Model {
  constructor(head, columns, lines) {
    Object.assign(this, { head, columns, count: head.count, parent: columns.parent });
    this.written = this._times("start");
    this.start = this.written.slice();
    this.length = this._times("length");
    this.pathStart = this._times("pathStart");
    this.pathLength = this._times("pathLength");
    this.logTime = this._times("logTime");
    this.pathFirst = firsts(columns.pathSpan, this.count);
    this.logOrder = Int32Array.from(columns.logSpan.keys()).sort(
      (a, b) => columns.logSpan[a] - columns.logSpan[b] || a - b);
    this.logFirst = firsts(this.logOrder.map((log) => columns.logSpan[log]), this.count);
    this._nest();
    this._shapes();
    this._values = null;
    this._lines = lines;
    this.offset = head.offset_ns.map(Number);
    this.hasOffsets = this.offset.some((ns) => ns !== 0);
    this.extras = new Map();
    const extras = lines("extras");
    columns.extraSpan.forEach((span, at) => this.extras.set(span, extras[at]));
    this._logs = null;
    this.bounds();
  }

  _times(name) {
    const low = this.columns[`${name}Low`];
    const high = this.columns[`${name}High`];
    return Float64Array.from(low, (part, at) =>
      high[at] === NO_TIME ? NaN : high[at] * HIGH + part);
  }

  _exact(name, at) {
    const high = this.columns[`${name}High`][at];
    return high === NO_TIME ? null : (BigInt(high) << 32n) | BigInt(this.columns[`${name}Low`][at]);
  }

  /** Depths, and for each span the place after the last one below it. */
  _nest() {
    this.depth = new Int32Array(this.count);
    this.last = new Int32Array(this.count);
    this.onPath = new Uint8Array(this.count);
    for (let span = 0; span < this.count; span += 1) {
      const above = this.parent[span];
      if (above >= 0) this.depth[span] = this.depth[above] + 1;
      this.last[span] = span + 1;
    }
    for (let span = this.count - 1; span >= 0; span -= 1) {
      if (this.pathFirst[span + 1] > this.pathFirst[span]) this.onPath[span] |= 1;
      const above = this.parent[span];
      if (above < 0) continue;
      this.last[above] = Math.max(this.last[above], this.last[span]);
      if (this.onPath[span]) this.onPath[above] |= 2;
    }
  }

  /** Where the values of each shape begin, and the how-manieth of its shape each span is. */
  _shapes() {
    const { shapes } = this.head;
    this.shapeSize = new Int32Array(shapes.length);
    this.rank = Int32Array.from(this.columns.shape, (shape) => this.shapeSize[shape]++);
    this.shapeBase = new Int32Array(shapes.length);
    for (let shape = 1; shape < shapes.length; shape += 1) {
      this.shapeBase[shape] =
        this.shapeBase[shape - 1] + shapes[shape - 1].length * this.shapeSize[shape - 1];
    }
  }

  /** Earliest start and latest end, anew after clocks were moved. */
  bounds() {
    let [from, to] = [Infinity, -Infinity];
    for (let span = 0; span < this.count; span += 1) {
      from = Math.min(from, this.start[span]);
      to = Math.max(to, this.start[span] + this.length[span]);
    }
    this.from = from;
    this.to = Math.max(to, from + 1);
  }

  /** Take the estimated offsets of clocks off all times, or put them back. */
  align(isAligned) {
    for (let span = 0; span < this.count; span += 1) {
      this.start[span] = this.written[span] - (isAligned ? this.offsetOf(span) : 0);
    }
    this.isAligned = isAligned;
    this.bounds();
  }

  offsetOf(span) { return this.offset[this.columns.offset_ns[span]]; }
  name(span) { return this.head.name[this.columns.name[span]]; }
  service(span) { return this.head.service_name[this.columns.service_name[span]]; }
  instance(span) { return this.head.service_instance_id[this.columns.service_instance_id[span]]; }
  trace(span) { return this.head.trace_id[this.columns.trace_id[span]]; }
  rollout(span) { return this.head.rollout_id[this.columns.rollout_id[span]]; }
  file(span) { return this.head.file[this.columns.file[span]]; }
  line(span) { return this.columns.line[span]; }
  kind(span) { return this.head.kinds[this.columns.kind[span]]; }
  state(span) { return this.head.states[this.columns.flags[span] & 3]; }
  isError(span) { return (this.columns.flags[span] & 4) !== 0; }
  isOrphan(span) { return (this.columns.flags[span] & 8) !== 0; }
  isCycle(span) { return (this.columns.flags[span] & 16) !== 0; }
  end(span) { return this.start[span] + this.length[span]; }
  startExact(span) { return this._exact("start", span); }
  lengthExact(span) { return this._exact("length", span); }
  selfExact(span) { return this._exact("self", span); }
  logExact(log) { return this._exact("logTime", log); }
  get t0() { return BigInt(this.head.t0); }

  /** 16 hex digits. */
  id(span) {
    const bytes = this.columns.id.subarray(span * 8, span * 8 + 8);
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  /** The first span with this id, or -1. */
  find(id) {
    if (!/^[0-9a-f]{16}$/.test(id)) return -1;
    for (let span = 0; span < this.count; span += 1) {
      if (this.columns.id[span * 8] === parseInt(id.slice(0, 2), 16) && this.id(span) === id) return span;
    }
    return -1;
  }

  /** [key, JSON text] pairs. */
  attributes(span) {
    this._values ??= this._lines("values");
    const shape = this.columns.shape[span];
    return this.head.shapes[shape].map((key, at) => [
      key, this._values[this.shapeBase[shape] + at * this.shapeSize[shape] + this.rank[span]]]);
  }

  /** Events, links, message and the count of dropped attributes; null for none. */
  extra(span) {
    return this.extras.has(span) ? JSON.parse(this.extras.get(span)) : null;
  }

  /** Numbers of the log records written in a span, by time. */
  logsOf(span) { return this.logOrder.subarray(this.logFirst[span], this.logFirst[span + 1]); }

  log(number) {
    this._logs ??= this._lines("logs");
    return JSON.parse(this._logs[number]);
  }

  /** Time of the span that lies on a critical path, ns. */
  critical(span) {
    let sum = 0;
    for (let at = this.pathFirst[span]; at < this.pathFirst[span + 1]; at += 1) {
      sum += this.pathLength[at];
    }
    return sum;
  }

  /** Whether a tenth of the span or more lies on a critical path: nearly all touch one somewhere. */
  isCritical(span) { return this.onPath[span] & 1 && this.critical(span) >= this.length[span] / 10; }

  /** Spans whose name, service, ids, attributes, message or logs contain the words, in order. */
  search(words) {
    const wanted = words.toLowerCase();
    const matching = (texts) => texts.map((text) => text.toLowerCase().includes(wanted));
    const { head, columns } = this;
    const few = ["name", "service_name", "service_instance_id", "trace_id", "rollout_id"].map(
      (name) => [columns[name], matching(head[name])]);
    const isId = /^[0-9a-f]{4,16}$/.test(wanted);
    const found = new Uint8Array(this.count);
    for (let span = 0; span < this.count; span += 1) {
      found[span] = few.some(([column, matches]) => matches[column[span]])
        || (isId && this.id(span).includes(wanted)) ? 1 : 0;
    }
    this._values ??= this._lines("values");
    for (let span = 0; span < this.count; span += 1) {
      if (found[span]) continue;
      const shape = columns.shape[span];
      const keys = head.shapes[shape];
      for (let at = 0; at < keys.length; at += 1) {
        const value = this._values[this.shapeBase[shape] + at * this.shapeSize[shape] + this.rank[span]];
        if (keys[at].toLowerCase().includes(wanted) || spoken(value).toLowerCase().includes(wanted)) {
          found[span] = 1;
          break;
        }
      }
    }
    for (const [span, text] of this.extras) if (text.toLowerCase().includes(wanted)) found[span] = 1;
    this._logs ??= this._lines("logs");
    this._logs.forEach((text, log) => {
      if (text.toLowerCase().includes(wanted)) found[columns.logSpan[log]] = 1;
    });
    const hits = [];
    for (let span = 0; span < this.count; span += 1) if (found[span]) hits.push(span);
    return hits;
  }
}

/** For a sorted column of places, where each place's entries begin; one more for the end. */
function firsts(places, count) {
  const begins = new Int32Array(count + 1);
  for (const place of places) begins[place + 1] += 1;
  for (let at = 0; at < count; at += 1) begins[at + 1] += begins[at];
  return begins;
}
