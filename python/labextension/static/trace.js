// What is known of a kernel's devices: views (application/vnd.drupe.trace+json, version 1) put together. A view is
// whole, or holds the spans that have changed since another one and all that go on. Times are nanoseconds of the
// kernel's clock.

const MOST_SPANS = 24000; // the kernel remembers 16384
const MOST_SAMPLES = 4096;
const KINDS = ['kernels', 'copies', 'host'];

export const STATUS = ['not over', 'complete', 'complete', 'failed', 'skipped', 'cancelled', 'over, nobody saw how'];
// How far work is. What the page was told by a kernel without states is over, or submitted.
export const OVER = 0;
export const RUNNING = 1;
export const WAITING = 2;
export const SUBMITTED = 3;
export const STATE = ['over', 'running', 'waiting', 'submitted'];
export const MEMORY_KINDS = ['device', 'shared', 'host'];
export const FAILED = 3;
export const SKIPPED = 4; // from here on it did not run

// It ran then; else it ran some time between, or has not begun.
export const ran = span => span.exact && span.state <= RUNNING;

// "1 running, 3 waiting", of numbers by state.
export function openText(open = []) {
  return [RUNNING, WAITING, SUBMITTED].filter(state => open[state] > 0).map(state => `${open[state]} ${STATE[state]}`)
    .join(', ');
}

// Functions of the host keep a CPU busy, and no GPU; as engine/view/room.h has it.
const occupies = lane => lane.kind !== 'host' || lane.device.includes(':cpu:');

const laneKey = lane => `${lane.device} ${lane.queue} ${lane.kind}`;

export class Trace {
  constructor(view) {
    this.clear();
    if (view) this.merge(view);
  }

  clear() {
    this.serial = 0;
    this.latest = 0;
    this.now = 0;
    this.unix = 0;
    this.lanes = [];
    this.devices = [];
    this.cells = [];
    this.colours = ['#888888'];
  }

  // Whether a view cannot be a continuation of what is here: the kernel began anew.
  isNew(view) {
    return view.serial < this.serial || view.latest < this.latest || view.now < this.now;
  }

  merge(view) {
    if (view?.version !== 1) throw new Error(`a trace of version ${view?.version}; this reads version 1`);
    if (this.isNew(view)) this.clear();
    for (const name of ['serial', 'latest', 'now', 'unix']) this[name] = Number(view[name]) || 0;
    if (view.colours?.length) this.colours = view.colours;
    this._mergeCells(view.cells ?? []);
    this._mergeDevices(view.devices ?? []);
    this._mergeSpans(view);
    return this;
  }

  _mergeCells(cells) {
    const known = new Map(this.cells.map(cell => [cell.number, cell]));
    for (const cell of cells) known.set(cell.number, cell);
    this.cells = [...known.values()].sort((a, b) => a.number - b.number);
    this.byNumber = new Map(this.cells.map(cell => [cell.number, cell]));
  }

  _mergeDevices(devices) {
    const known = new Map(this.devices.map(device => [device.filter, device.samples]));
    this.devices = devices.map(device => {
      const old = known.get(device.filter) ?? [];
      const last = old.length ? old[old.length - 1][0] : -1;
      const samples = old.concat((device.samples ?? []).filter(sample => sample[0] > last)).slice(-MOST_SAMPLES);
      return { ...device, samples };
    });
  }

  _lanesOf(view) {
    const known = new Map(this.lanes.map(lane => [laneKey(lane), lane]));
    const lanes = (view.lanes ?? []).map(given => {
      const lane = known.get(laneKey(given)) ?? { ...given, spans: [], byId: new Map() };
      known.set(laneKey(given), lane);
      lane.waiting = given.waiting;
      lane.open = given.open ?? [0, 0, 0, given.waiting];
      return lane;
    });
    const order = new Map(this.devices.map((device, i) => [device.filter, i]));
    const place = lane => order.get(lane.device) ?? order.size;
    this.lanes = [...known.values()].sort((a, b) => place(a) - place(b) || a.device.localeCompare(b.device) ||
      a.queue - b.queue || KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
    return lanes;
  }

  _mergeSpans(view) {
    const lanes = this._lanesOf(view);
    for (const lane of this.lanes) {
      if (view.whole) lane.byId.clear();
      for (const [id, span] of lane.byId) if (!span.end) lane.byId.delete(id); // those that go on still are in the view
    }
    for (const given of view.spans ?? []) {
      const [lane, start, end, busy, count, bytes, items, cell, label, status, exact, id, place,
        state = end ? OVER : SUBMITTED] = given;
      const owner = lanes[lane];
      if (!owner) continue;
      const span = { start, end, busy, count, bytes, items, cell, label: view.labels[label] ?? '', status,
        exact: Boolean(exact), state, id, place: place >= 0 ? view.places[place] ?? '' : '' };
      owner.byId.set(id, span);
    }
    for (const lane of this.lanes) {
      lane.spans = [...lane.byId.values()].sort((a, b) => a.start - b.start || a.id - b.id);
    }
    this._trim();
  }

  _trim() {
    let total = this.lanes.reduce((sum, lane) => sum + lane.spans.length, 0);
    if (total <= MOST_SPANS) return;
    const starts = this.lanes.flatMap(lane => lane.spans.map(span => span.start)).sort((a, b) => a - b);
    const since = starts[total - MOST_SPANS];
    for (const lane of this.lanes) {
      lane.spans = lane.spans.filter(span => span.start >= since);
      lane.byId = new Map(lane.spans.map(span => [span.id, span]));
    }
  }

  // --- Questions --------------------------------------------------------------------------------------------

  get empty() {
    return this.lanes.every(lane => lane.spans.length === 0);
  }

  // Whether work is among it whose times are not known.
  get hatched() {
    return this.lanes.some(lane => lane.spans.some(span => !span.exact));
  }

  endOf(span) {
    if (span.state === RUNNING) return span.start + span.busy;
    return span.end || Math.max(this.now, span.start);
  }

  // From the first span to the last, of a cell or of all; null when there is none.
  range(cell = undefined) {
    let from = Infinity;
    let to = -Infinity;
    for (const lane of this.lanes) {
      for (const span of lane.spans) {
        if (cell !== undefined && span.cell !== cell) continue;
        if (span.start < from) from = span.start;
        to = Math.max(to, this.endOf(span));
      }
    }
    return from < Infinity ? { from, to } : null;
  }

  // The same of the samples of memory.
  memoryRange() {
    const there = this.devices.filter(device => device.samples.length > 0);
    if (there.length === 0) return null;
    return { from: Math.min(...there.map(device => device.samples[0][0])),
      to: Math.max(...there.map(device => device.samples[device.samples.length - 1][0])) };
  }

  // The number of the cell that worked last; one whose work did not run only if there is no other.
  lastCell() {
    let last = null;
    for (const lane of this.lanes) {
      const span = lane.spans.findLast(span => span.status < SKIPPED) ?? lane.spans[lane.spans.length - 1];
      if (!span) continue;
      const better = !last || (span.status < SKIPPED) > (last.status < SKIPPED);
      if (better || ((span.status < SKIPPED) === (last.status < SKIPPED) && span.start > last.start)) last = span;
    }
    return last ? last.cell : undefined;
  }

  // Cells that have spans, or whose hue an amount of memory has within `range`, in order.
  cellsShown(range = null) {
    const numbers = new Set(this.lanes.flatMap(lane => lane.spans.map(span => span.cell)));
    for (const { samples } of range ? this.devices : []) {
      samples.forEach(([start, a, b, c, , cell], i) => {
        const end = samples[i + 1]?.[0] ?? this.now;
        if (cell && a + b + c > 0 && start <= range.to && end >= range.from) numbers.add(cell);
      });
    }
    return [...numbers].sort((a, b) => a - b);
  }

  colour(cell) {
    if (!cell) return '#888888';
    return this.byNumber?.get(cell)?.colour ?? this.colours[(cell - 1) % this.colours.length];
  }

  // Sums over all cells, or over one.
  sums(cell = undefined) {
    const total = { kernels: 0, copies: 0, host: 0, moved: 0, failed: 0, waiting: 0, missed: 0, busy: 0, maybe: 0 };
    for (const one of this.cells) {
      if (cell !== undefined && one.number !== cell) continue;
      KINDS.forEach((kind, i) => { total[kind] += one.count[i]; });
      total.moved += one.bytes[1];
      for (const name of ['failed', 'waiting', 'missed', 'busy', 'maybe']) total[name] += one[name] ?? 0;
    }
    return total;
  }

  // The share of all its time that a device, named by its filter, had work, and the share in which it may have had some
  // beside that: { busy, maybe }. Times that overlap count once.
  shareOf(filter) {
    const range = this.range();
    if (!range || range.to <= range.from) return { busy: 0, maybe: 0 };
    const spans = this.lanes.filter(lane => lane.device === filter && occupies(lane)).flatMap(lane => lane.spans)
      .filter(span => span.status < SKIPPED && span.state !== WAITING).sort((a, b) => a.start - b.start);
    const whole = range.to - range.from;
    const busy = this._covered(spans.filter(ran)) / whole;
    return { busy, maybe: Math.min(1 - busy, this._covered(spans.filter(span => !ran(span))) / whole) };
  }

  _covered(spans) {
    let covered = 0;
    let until = -Infinity;
    for (const span of spans) {
      const end = this.endOf(span);
      const length = end - span.start;
      const pauses = ran(span) && span.count > 1 && length > 0;
      const share = pauses ? Math.min(1, span.busy / length) : 1;
      covered += Math.max(0, end - Math.max(until, span.start)) * share;
      until = Math.max(until, end);
    }
    return covered;
  }

  // Of work, also that which did not run because of something that is no work, such as a future.
  get failures() {
    return this.cells.reduce((sum, cell) => sum + cell.failed + cell.skipped, 0);
  }

  get waiting() {
    return this.devices.reduce((sum, device) => sum + device.waiting, 0);
  }
}
