// The part of time that is looked at. It follows the last cell or everything until somebody zooms or pans.

const SHORTEST = 200; // ns
const SHORTEST_CELL = 20000; // that is shown by itself: what takes less stays a thin line
const MARGIN = 0.02;

export class Window {
  // `memory`: everything is also what is known of the memory.
  constructor({ memory = false } = {}) {
    this.memory = memory;
    this.mode = 'cell'; // 'cell': the last one that worked; 'all'; 'free': where the user has gone
    this.cell = undefined; // a cell that the user has chosen
    this.from = 0;
    this.to = 1e9;
    this.zero = 0; // what the axis counts from
    this.whole = { from: 0, to: 1e9 };
    this.listeners = new Set();
  }

  get length() {
    return this.to - this.from;
  }

  changed() {
    for (const listener of this.listeners) listener();
  }

  choose(mode, trace, cell = undefined) {
    this.mode = mode;
    this.cell = cell;
    this.follow(trace);
    this.changed();
  }

  // Take the range of what is there now, unless the user has gone elsewhere.
  follow(trace) {
    const whole = this._wholeOf(trace);
    if (!whole) return;
    this.whole = whole;
    if (this.mode === 'free') return;
    const cell = this.cell ?? trace.lastCell();
    const range = (this.mode === 'cell' && trace.range(cell)) || whole;
    this.zero = range.from;
    const length = Math.max(SHORTEST_CELL, range.to - range.from);
    this.from = range.from - length * MARGIN;
    this.to = range.from + length * (1 + MARGIN);
  }

  _wholeOf(trace) {
    const work = trace.range();
    const memory = this.memory || !work ? trace.memoryRange() : null;
    if (!work || !memory) return work ?? memory;
    return { from: Math.min(work.from, memory.from), to: Math.max(work.to, memory.to) };
  }

  _allowed(length) {
    const whole = Math.max(SHORTEST_CELL, this.whole.to - this.whole.from);
    return Math.min(Math.max(length, SHORTEST), whole * 1.2);
  }

  _put(from, length) {
    length = this._allowed(length);
    const slack = length * 0.5; // something of the whole stays in sight
    this.from = Math.min(Math.max(from, this.whole.from - slack), this.whole.to - length + slack);
    this.to = this.from + length;
    this.mode = 'free';
    this.changed();
  }

  // Zoom by a factor (below 1: closer), with the instant that lies at `share` of the width kept in place.
  zoom(factor, share = 0.5) {
    const at = this.from + share * this.length;
    const length = this._allowed(this.length * factor);
    this._put(at - share * length, length);
  }

  // Move by a share of the width; to the right when positive.
  pan(share) {
    this._put(this.from + share * this.length, this.length);
  }

  // Put an instant into the middle.
  centre(ns) {
    this._put(ns - this.length / 2, this.length);
  }

  // Bring [from, to] into sight, as it is when that fits.
  reveal(from, to) {
    if (from >= this.from && to <= this.to) return;
    if (to - from > this.length) this._put(from - (to - from) * 0.1, (to - from) * 1.2);
    else this.centre((from + to) / 2);
  }
}
