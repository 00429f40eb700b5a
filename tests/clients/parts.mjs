// The parts of the panel that need neither a browser nor a kernel.
import { readFileSync } from 'node:fs';
import { check, equal, main, scenario } from './harness.mjs';
import { ERROR, MS, cell, device, view } from './views.mjs';

const { Trace } = await import('../../python/labextension/static/trace.js');
const { Window } = await import('../../python/labextension/static/window.js');
const { AWAY, CALM, PERIOD, Poller } = await import('../../python/labextension/static/poller.js');
const { describe } = await import('../../python/labextension/static/describe.js');
const { rowsByLabel } = await import('../../python/labextension/static/table.js');
const { rowsOf } = await import('../../python/labextension/static/paint.js');
const { fitLabel } = await import('../../python/labextension/static/surface.js');
const { summary } = await import('../../python/labextension/static/summary.js');
const { leaseText } = await import('../../python/labextension/static/lease.js');
const { Link, Quiet } = await import('../../python/labextension/static/link.js');
const words = await import('../../python/labextension/static/words.js');

const names = lane => lane.spans.map(span => span.id);

scenario("a trace grows by deltas", async () => {
  const trace = new Trace(view({ spans: [{ start: 1, end: 2 }, { start: 3, end: 0 }], cells: [{ number: 1 }] }));
  equal(names(trace.lanes[0]), [1, 2], 'the first view');
  trace.merge(view({ serial: 2, now: 2000 * MS, spans: [{ start: 3, end: 9, id: 2, cell: 1 }, { start: 0.5, end: 1, id: 7, cell: 2 }],
    cells: [{ number: 2 }] }));
  equal(names(trace.lanes[0]), [7, 1, 2], 'in order of their starts');
  equal(trace.lanes[0].spans[2].end, 9 * MS, 'the running one has ended');
  equal(trace.cells.map(one => one.number), [1, 2], 'cells that are not in the delta stay');
  trace.merge(view({ serial: 1 }));
  equal([trace.empty, trace.cells.length], [true, 0], 'a lower serial is another life of the kernel');
});

scenario("a trace keeps its lanes when new ones come between", async () => {
  const lanes = [{ device: 'opencl:gpu:0', queue: 1, kind: 'kernels', waiting: 0 },
    { device: 'opencl:gpu:0', queue: 3, kind: 'kernels', waiting: 1 }];
  const trace = new Trace(view({ lanes, spans: [{ lane: 1, start: 1, end: 2, id: 5 }] }));
  const more = [lanes[0], { device: 'opencl:gpu:0', queue: 2, kind: 'copies', waiting: 0 }, { ...lanes[1], waiting: 0 }];
  trace.merge(view({ serial: 2, lanes: more, spans: [{ lane: 2, start: 4, end: 5, id: 6 }] }));
  equal(trace.lanes.map(lane => `${lane.queue}${lane.kind}`), ['1kernels', '2copies', '3kernels'], 'lanes');
  equal(names(trace.lanes[2]), [5, 6], 'both spans are in the lane of queue 3');
  equal(trace.lanes[2].waiting, 0, 'what waits is that of the last view');
});

scenario("a whole view replaces everything, and what went on is told again", async () => {
  const trace = new Trace(view({ spans: [{ start: 1, end: 2 }, { start: 2, end: 0 }, { lane: 1, start: 3, end: 0 }] }));
  trace.merge(view({ serial: 2, spans: [{ start: 2, end: 8, id: 4 }] }));
  equal(trace.lanes.map(names), [[1, 4], []], 'spans that went on are forgotten');
  trace.merge(view({ serial: 3, whole: true, spans: [{ start: 1, end: 8, id: 1, count: 3, busy: 2 }] }));
  equal(trace.lanes.map(names), [[1], []], 'spans that were merged');
});

scenario("samples of memory are not doubled", async () => {
  const trace = new Trace(view({ devices: [device({ samples: [[1, 1, 0, 0, 1, 1], [2, 2, 0, 0, 2, 1]] })] }));
  trace.merge(view({ serial: 2, devices: [device({ samples: [[2, 2, 0, 0, 2, 1], [3, 3, 0, 0, 3, 1]] })] }));
  equal(trace.devices[0].samples.map(sample => sample[0]), [1, 2, 3], 'samples');
});

scenario("a long life stays bounded", async () => {
  const trace = new Trace();
  for (let round = 1; round <= 6; ++round) {
    const spans = Array.from({ length: 8000 }, (_, i) => ({ start: round * 8000 + i, end: round * 8000 + i + 0.5, id: round * 8000 + i }));
    trace.merge(view({ serial: round, spans }));
  }
  const { spans } = trace.lanes[0];
  check(spans.length <= 24000, `${spans.length} spans`);
  equal(spans[spans.length - 1].start, 55999 * MS, 'the latest are kept');
});

scenario("another version is refused, garbage too", async () => {
  for (const wrong of [{ version: 2 }, {}, null, undefined, 'x']) {
    let refused = false;
    try {
      new Trace().merge(wrong);
    } catch {
      refused = true;
    }
    check(refused, JSON.stringify(wrong));
  }
  new Trace().merge({ version: 1 });
  new Trace().merge(view({ spans: [{ lane: 99, start: 1, end: 2 }] })); // a lane that is not there
});

scenario("the window follows, zooms and comes back", async () => {
  const trace = new Trace(view({ spans: [{ start: 0, end: 10, cell: 1 }, { start: 100, end: 110, cell: 2 }] }));
  const window = new Window();
  window.follow(trace);
  check(window.from <= 100 * MS && window.from > 99 * MS && window.to >= 110 * MS && window.to < 111 * MS, 'the last cell');
  window.choose('all', trace);
  check(window.from <= 0 && window.to >= 110 * MS, 'all');
  const at = window.from + 0.25 * window.length;
  window.zoom(0.1, 0.25);
  check(Math.abs(window.from + 0.25 * window.length - at) < 10, 'the instant under the pointer stays');
  const { from } = window;
  trace.merge(view({ serial: 2, spans: [{ start: 200, end: 300, cell: 3, id: 8 }] }));
  window.follow(trace);
  equal(window.from, from, 'what the user looks at does not move');
  for (let i = 0; i < 200; ++i) window.zoom(0.5);
  check(window.length >= 200, 'there is a smallest part');
  for (let i = 0; i < 200; ++i) window.zoom(2);
  check(window.length <= 300 * MS * 1.21, 'and a largest');
  for (let i = 0; i < 200; ++i) window.pan(1);
  check(window.from <= 300 * MS, 'nobody gets lost');
  window.reveal(0, 10 * MS);
  check(window.from <= 0 && window.to >= 10 * MS, 'revealed');
  window.choose('cell', trace, 1);
  check(window.to < 11 * MS, 'a cell that was chosen');
});

scenario("numbers have one unit each", async () => {
  equal([0, 999, 1024, 1536, 1023.9 * 1024, 3.5 * 2 ** 30].map(words.bytes),
    ['0 B', '999 B', '1.00 KiB', '1.50 KiB', '1.00 MiB', '3.50 GiB'], 'bytes');
  equal([500, 1500, 12.34e6, 1e9, 61e9, 125e9, 2 * 3600e9].map(words.duration),
    ['500 ns', '1.50 µs', '12.3 ms', '1.00 s', '61.0 s', '2 min 5 s', '2 h 0 min'], 'durations');
  equal(words.rate(2 ** 30, 1e9), '1.07 GB/s', 'rate');
  equal([0, 0.07, 1, 7].map(words.percent).map(text => text.length), [5, 5, 5, 5], 'percentages are equally wide');
  const marks = words.ticks(3 * MS, 103 * MS, 5, 3 * MS);
  equal(marks.map(mark => mark.text), ['0', '20 ms', '40 ms', '60 ms', '80 ms', '100 ms'], 'an axis');
  equal(words.ticks(0, 900, 4, 0).map(mark => mark.text), ['0', '500 ns'], 'a short one');
  equal(words.ticks(0, 4e9, 4, 0).map(mark => mark.text), ['0', '1 s', '2 s', '3 s', '4 s'], 'a long one');
});

scenario("a label that is cut keeps its lines", async () => {
  const fused = 'multiply, add, sqrt: lines 2-3';
  const others = ['vadd', 'a: line', 'add: some of lines 3-40 and elsewhere'];
  equal([fused, ...others].map(words.labelParts), [['multiply, add, sqrt', ': lines 2-3'], ['vadd', ''], ['a: line', ''],
    ['add', ': some of lines 3-40 and elsewhere']], 'parts');
  const context = { measureText: text => ({ width: text.length }) };
  equal([30, 29, 27, 26, 22, 13, 12].map(width => fitLabel(context, fused, width)), [fused, 'multiply, add, …: lines 2-3',
    'multiply, add, …: lines 2-3', 'multiply, add, …: lines 2-3', 'multiply, …: lines 2-3', 'm…: lines 2-3',
    'multiply, a…'], 'labels');
  equal(fitLabel(context, 'multiply, negative, ...: lines 2-3', 31), 'multiply, negative, …: lines 2-3', 'dots of its own');
});

scenario("a span in words", async () => {
  const trace = new Trace(view({ cells: [{ number: 7, count: [2, 1, 0], bytes: [0, 2 ** 20, 0], busy: 3 * MS, failed: 1 }], spans: [
    { start: 1, end: 3, label: 'vadd', cell: 7, place: 'cell [7], line 3', items: 1024, exact: true },
    { lane: 1, start: 3, end: 4, label: 'copy', cell: 7, bytes: 2 ** 20, status: 3 },
    { start: 5, end: 0, busy: 995, label: 'slow', cell: 0, status: 0, state: 1 },
    { start: 6, end: 16, busy: 5, count: 10, label: 'many' },
    { start: 17, end: 19, busy: 0, label: 'unmeasured', exact: false },
    { start: 20, end: 0, label: 'next', status: 0, state: 2 },
    { start: 21, end: 0, label: 'far', status: 0, state: 3, exact: false }] }));
  const [kernels, copies] = trace.lanes;
  const tell = (lane, i) => { const { title, lines } = describe(lane.spans[i], lane, trace); return [title, ...lines]; };
  equal(tell(kernels, 0), ['vadd', 'cell [7], line 3', '2.00 ms', '1,024 work-items', 'complete', 'opencl:gpu:0, queue 1'], 'a kernel');
  equal(tell(copies, 0).slice(0, 5), ['copy', 'cell [7]', '1.00 ms', '1.00 MiB, 1.05 GB/s', 'failed'], 'a copy');
  equal(tell(kernels, 1).slice(0, 4), ['slow', 'no cell', '995 ms so far', 'running'], 'one that goes on');
  equal(tell(kernels, 2).slice(0, 3), ['many × 10', 'cell [1]', '5.00 ms of 10.0 ms, 500 µs each'], 'several');
  equal(tell(kernels, 3).slice(0, 4), ['unmeasured', 'cell [1]', 'some time within these 2.00 ms', 'complete'], 'an interval');
  check(tell(kernels, 3)[4].includes('%config Drupe.profile = True'), 'it says how times are had');
  equal(tell(kernels, 4).slice(2, 4), ['waiting for 980 ms', 'waiting'], 'one that waits');
  equal(tell(kernels, 5).slice(2, 5), ['submitted for 979 ms', 'submitted', 'it is not known whether it has started'], 'who knows');
  equal(summary(trace), '3.00 ms busy · 1 failed · 2 kernels · 1.00 MiB copied · 1.00 KiB in use', 'the first line');
});

scenario("what was not measured is not busy", async () => {
  const cells = [{ number: 1, busy: 10 * MS, maybe: 30 * MS, count: [2, 0, 0], untimed: [1, 0, 0] }];
  const lanes = ['kernels', 'host'].map(kind => ({ device: 'opencl:gpu:0', queue: 1, kind, waiting: 0 }));
  const spans = [{ start: 0, end: 10 }, { start: 50, end: 80, exact: false, busy: 0, label: 'unmeasured' },
    { lane: 1, start: 90, end: 100 }, { start: 90, end: 0, busy: 0, status: 0, state: 2 }];
  const trace = new Trace(view({ cells, lanes, spans, now: 100 * MS }));
  const { busy, maybe } = trace.shareOf('opencl:gpu:0');
  check(Math.abs(busy - 0.1) < 1e-9 && Math.abs(maybe - 0.3) < 1e-9, `busy ${busy}, maybe ${maybe}`);
  const rows = rowsByLabel(trace);
  equal(rows.map(row => [row.label, row.busy, row.untimed]), [['unmeasured', 0, 1], ['work', 10 * MS, 0], ['work', 10 * MS, 0]], 'the table');
  equal([trace.hatched, new Trace(view({ spans: [{ start: 0, end: 1 }] })).hatched], [true, false], 'the legend');
  check(summary(trace).startsWith('10.0 ms to 40.0 ms busy'), summary(trace));
  equal([words.mostPercent({ busy: 0.1, maybe: 0.3 }), words.mostPercent({ busy: 0.1 })], ['≤40 %', words.percent(0.1)],
    'shares');
  const old = new Trace(view({ spans: [{ start: 1, end: 0, status: 0, exact: false, busy: 0 }] })); // of a kernel without states
  equal(old.lanes[0].spans[0].state, 3, 'nobody knows');
});

// A clock of the test's own, and what was asked by it.
class Clockwork {
  constructor(options = {}) {
    this.time = 0;
    this.timers = new Map();
    this.number = 0;
    this.asked = [];
    this.look = true;
    this.active = false;
    this.poller = new Poller({
      ask: async () => { this.asked.push(this.time); return this.active; }, wanted: () => this.look, now: () => this.time,
      later: (f, ms) => { this.timers.set(++this.number, { f, at: this.time + ms }); return this.number; },
      drop: id => void this.timers.delete(id), ...options
    });
  }

  async run(ms) {
    const end = this.time + ms;
    for (;;) {
      await new Promise(done => setImmediate(done));
      const next = [...this.timers].sort((a, b) => a[1].at - b[1].at)[0];
      if (!next || next[1].at > end) break;
      this.timers.delete(next[0]);
      this.time = next[1].at;
      next[1].f();
    }
    this.time = end;
  }
}

scenario("it asks while somebody may look, and not otherwise", async () => {
  const it = new Clockwork();
  it.poller.wake();
  await it.run(10 * CALM);
  equal(it.asked.length, 11, 'calm');
  it.active = true;
  await it.run(CALM);
  const before = it.asked.length;
  await it.run(10 * PERIOD);
  equal(it.asked.length, before + 10, 'something goes on');
  it.look = false;
  await it.run(PERIOD);
  const hidden = it.asked.length;
  await it.run(100 * PERIOD);
  equal([it.asked.length, it.timers.size], [hidden, 0], 'nothing at all while nobody looks');
  it.look = true;
  it.poller.wake();
  await it.run(1);
  equal(it.asked.length, hidden + 1, 'at once when somebody does');
});

scenario("it stops when the user is away and goes on when they come back", async () => {
  const it = new Clockwork();
  it.active = true; // even while a cell runs
  it.poller.wake();
  await it.run(AWAY + 60000);
  const last = it.asked[it.asked.length - 1];
  check(last < AWAY && last > AWAY - 2 * PERIOD, `the last one came after ${last} ms`);
  equal(it.timers.size, 0, 'no timer is left');
  const { length } = it.asked;
  it.poller.touch();
  await it.run(1);
  equal(it.asked.length, length + 1, 'it goes on');
  it.poller.stop();
  it.poller.wake();
  await it.run(10 * PERIOD);
  equal(it.asked.length, length + 1, 'stopped');
});

scenario("it never asks twice at a time, and a failure does not end it", async () => {
  let [running, most, rounds] = [0, 0, 0];
  const it = new Clockwork({ ask: async () => {
    most = Math.max(most, ++running);
    await new Promise(done => setImmediate(done));
    --running;
    if (++rounds % 2) throw new Error('no');
    return true;
  } });
  for (let i = 0; i < 20; ++i) it.poller.wake();
  await it.run(10 * CALM);
  equal(most, 1, 'at a time');
  check(rounds > 5, `${rounds} rounds`);
});

scenario("a kernel that refuses is quiet, one that does not answer is given up", async () => {
  const future = done => ({ done, isDisposed: false, dispose() { this.isDisposed = true; } });
  const kernel = { status: 'idle', connectionStatus: 'connected', isDisposed: false };
  const link = new Link(kernel);
  equal(link.ready, true, 'ready');
  let last;
  kernel.requestDebug = request => (last = future(Promise.resolve({ content: { success: true, body: request } })));
  equal(await link.view(7), { type: 'request', seq: 1, command: 'drupe/view', arguments: { after: 7 } }, 'what is sent');
  check(last.isDisposed, 'nothing is kept');
  kernel.requestDebug = () => future(Promise.resolve({ content: { success: false, message: 'no engine' } }));
  const refusal = await link.hello().catch(error => error);
  check(refusal instanceof Quiet && refusal.message === 'no engine', String(refusal));
  kernel.requestDebug = () => future(Promise.reject(new Error('Canceled')));
  check((await link.hello().catch(error => error)).message === 'Canceled', 'a kernel that goes');
  equal(new Link({ ...kernel, status: 'unknown' }).ready, true, 'as it is after a reconnection');
  for (const [name, value] of [['status', 'dead'], ['status', 'starting'], ['status', 'restarting'], ['connectionStatus', 'connecting'], ['isDisposed', true]]) {
    equal(new Link({ ...kernel, [name]: value }).ready, false, `${name} ${value}`);
  }
});

// A kernel connection as far as the model looks at it.
class Kernel {
  constructor(implementation = 'drupe') {
    const signal = () => { const slots = new Set(); return { slots, connect: slot => slots.add(slot), disconnect: slot => slots.delete(slot) }; };
    Object.assign(this, { status: 'idle', connectionStatus: 'connected', isDisposed: false, info: Promise.resolve({ implementation }),
      statusChanged: signal(), connectionStatusChanged: signal(), anyMessage: signal(), asked: [], answers: {} });
  }

  requestDebug(request) {
    this.asked.push(request.command);
    const body = this.answers[request.command]?.(request.arguments);
    return { done: Promise.resolve({ content: body ? { success: true, body } : { success: false } }), dispose() {} };
  }

  becomes(status) {
    this.status = status;
    for (const slot of this.statusChanged.slots) slot();
  }
}

async function withModel(looked, test) {
  globalThis.document = { addEventListener() {}, removeEventListener() {}, visibilityState: 'visible' };
  globalThis.window = globalThis.document;
  const { Model } = await import('../../python/labextension/static/model.js');
  const clock = new Clockwork();
  const { later, drop } = clock.poller;
  const model = new Model(looked instanceof Function ? looked : () => looked, { now: () => clock.time, later, drop });
  await test(model, clock);
  model.dispose();
}

scenario("a kernel of another kind is never asked", () => withModel(2, async (model, clock) => {
  const kernel = new Kernel('ipython');
  await model.watch(kernel);
  kernel.becomes('busy');
  await clock.run(60000);
  equal([model.state, kernel.asked], ['other', []], 'nothing');
  await model.watch(null);
  equal([model.state, kernel.statusChanged.slots.size, kernel.anyMessage.slots.size], ['none', 0, 0], 'and it is let go');
}));

scenario("the last word of a kernel that is gone is not about the next", () => withModel(2, async (model, clock) => {
  const kernel = new Kernel();
  await model.watch(kernel);
  await clock.run(1000);
  const slots = [...kernel.connectionStatusChanged.slots];
  kernel.isDisposed = true; // the connection tells of its end while it is taken apart
  await model.watch(null);
  for (const slot of slots) slot();
  equal(model.state, 'none', 'nothing is watched');
}));

scenario("a kernel without devices is asked once per cell, then as long as there is news", () => withModel(2, async (model, clock) => {
  const kernel = new Kernel();
  await model.watch(kernel);
  await clock.run(60000);
  equal([model.state, kernel.asked.length], ['quiet', 1], 'quiet');
  kernel.becomes('busy');
  kernel.becomes('idle');
  await clock.run(60000);
  check(kernel.asked.length <= 3, `${kernel.asked.length} questions`);
  const failed = [cell({ failed: 1 })];
  kernel.answers = { 'drupe/view': ({ after }) => view({ serial: after + 1, now: clock.time * MS, spans: [{ start: 1, end: 2 }], cells: failed }),
    'drupe/errors': ({ after }) => ({ errors: after ? [] : [{ id: 3 }], latest: 3 }) };
  kernel.becomes('busy');
  await clock.run(10000);
  equal([model.state, model.trace.empty, model.errors.map(error => error.id)], ['live', false, [3]], 'live');
  equal(kernel.asked.filter(command => command === 'drupe/errors').length, 1, 'errors are asked for when there are new ones');
  failed[0] = cell({ failed: 2 });
  await clock.run(3000);
  equal(kernel.asked.filter(command => command === 'drupe/errors').length, 2, 'such as now');
}));

scenario("a lease in a line", async () => {
  const lease = { state: 'held', devices: ['A GPU'], ends: 4000, waiting: 2, holds: '' };
  equal(leaseText(lease, 1000), 'Leased: A GPU · 50 min left · 2 others in the queue', 'held');
  equal(leaseText({ ...lease, waiting: 0 }, 3990), 'Leased: A GPU · 10 s left', 'at its end');
  equal(leaseText({ ...lease, ends: null, waiting: 1, holds: 'x holds its address' }, 0),
    'Leased: A GPU · 1 other in the queue\nx holds its address', 'without an end');
  const parked = { ...lease, state: 'parked', position: 0 };
  equal(leaseText({ ...parked, waiting: 1 }, 0),
    'The device is with others. It comes back when a cell needs it. 1 other in the queue.', 'parked');
  equal(leaseText({ ...parked, position: 3 }, 0), 'A cell waits for the device: 2 before it.', 'a cell waits');
  equal(leaseText({ ...parked, position: 1 }, 0), 'A cell waits for the device: it is next.', 'it is next');
  const ended = { ...lease, state: 'ended', holds: 'y stays.' };
  equal(leaseText(ended, 0), 'The lease has ended. Cells that use a device fail.\ny stays.', 'ended');
  equal(leaseText(null, 0), '', 'none');
});

scenario("a kernel with a lease is asked for it, also before a device is used", () => withModel(2, async (model, clock) => {
  const kernel = new Kernel();
  kernel.info = Promise.resolve({ implementation: 'drupe', supported_features: ['drupe lease'] });
  let waiting = 0;
  kernel.answers['drupe/lease'] = () => ({ state: 'held', devices: [], ends: null, waiting: waiting++, holds: '' });
  await model.watch(kernel);
  await clock.run(10000);
  equal([model.state, model.lease.waiting >= 3], ['quiet', true], `${waiting} questions`);
  kernel.becomes('restarting');
  equal(model.lease, null, 'forgotten with the life of the kernel');
}));

let seen;
scenario("a panel that is opened later asks for the lease, too", () => withModel(() => seen, async (model, clock) => {
  const kernel = new Kernel();
  kernel.info = Promise.resolve({ implementation: 'drupe', supported_features: ['drupe lease'] });
  kernel.answers['drupe/lease'] = () => ({ state: 'held', devices: [], ends: null, waiting: 0, holds: '' });
  seen = 1; // the status item is in sight, and rests
  await model.watch(kernel);
  await clock.run(10000);
  equal([model.lease, kernel.asked.includes('drupe/lease')], [null, false], 'nobody sees it');
  seen = 2;
  model.poller.wake();
  await clock.run(3000);
  equal(model.lease?.state, 'held', 'the lease');
}));

scenario("a kernel that fails for days stays bounded", () => withModel(2, async (model, clock) => {
  const kernel = new Kernel();
  let failed = 0;
  kernel.answers = { 'drupe/view': ({ after }) => view({ serial: after + 1, now: clock.time * MS, spans: [{ start: 1, end: 2 }],
    cells: [cell({ failed: failed += 64 })] }),
  'drupe/errors': ({ after }) => ({ errors: Array.from({ length: 64 }, (_, i) => ({ id: after + 1 + i })), latest: after + 64 }) };
  await model.watch(kernel);
  kernel.becomes('busy');
  await clock.run(20000);
  check(model.errorsSeen >= 640, `${model.errorsSeen} failures`);
  equal([model.errors.length, model.errors[99].id], [100, model.errorsSeen], 'the last ones are kept');
  equal(model.errorCount, model.errorsSeen, 'all are counted');
}));

scenario("a kernel that restarts is forgotten, one that died is shown as it was", () => withModel(2, async (model, clock) => {
  const kernel = new Kernel();
  kernel.answers['drupe/view'] = ({ after }) => view({ serial: after + 1, now: clock.time * MS, spans: [{ start: 1, end: 2 }] });
  await model.watch(kernel);
  await clock.run(5000);
  equal([model.state, model.trace.empty], ['live', false], 'live');
  kernel.becomes('dead');
  const { length } = kernel.asked;
  await clock.run(60000);
  equal([model.state, model.trace.empty, kernel.asked.length <= length + 1], ['dead', false, true], 'dead');
  kernel.becomes('restarting');
  equal([model.state, model.trace.empty], ['quiet', true], 'restarting');
  kernel.becomes('idle');
  await clock.run(5000);
  equal([model.state, model.trace.empty], ['live', false], 'and alive again');
}));

scenario("errors are asked for when work did not run, too", () => withModel(2, async (model, clock) => {
  const kernel = new Kernel();
  let skipped = 0;
  kernel.answers['drupe/view'] = ({ after }) => view({ serial: after + 1, now: clock.time * MS, spans: [{ start: 1, end: 2 }],
    cells: [{ number: 1, skipped }] });
  kernel.answers['drupe/errors'] = () => ({ errors: skipped ? [ERROR] : [], latest: skipped });
  await model.watch(kernel);
  await clock.run(5000);
  equal(model.errorCount, 0, 'none yet');
  skipped = 1; // because a future failed, which is no work itself
  kernel.becomes('busy');
  await clock.run(5000);
  equal(model.errorCount, 1, 'the failure that made it so');
}));

scenario("the status item asks for figures only", () => withModel(1, async (model, clock) => {
  const kernel = new Kernel();
  const wishes = [];
  kernel.answers['drupe/view'] = wish => { wishes.push(wish); return view({ serial: wishes.length, now: clock.time * MS, spans: [{ start: 1, end: 2 }] }); };
  await model.watch(kernel);
  await clock.run(10000);
  check(wishes.length > 3 && wishes.every(wish => wish.spans === 1), JSON.stringify(wishes));
  equal([model.trace.empty, model.trace.devices.length, kernel.asked.includes('drupe/errors')], [true, 1, false], 'figures');
}));

scenario("a table adds up what bears the same name", async () => {
  const trace = new Trace(view({ spans: [
    { start: 0, end: 4, label: 'wave', cell: 3, id: 1 }, { start: 5, end: 9, label: 'wave', cell: 5, id: 2 },
    { lane: 1, start: 9, end: 10, label: 'to_host', cell: 5, bytes: 100, id: 3, status: 3 },
    { start: 20, end: 30, busy: 5, count: 10, label: 'many', cell: 0, id: 4 }] }));
  equal(rowsByLabel(trace).map(row => [row.label, row.first, row.last, row.count, row.busy / MS, row.bytes, row.failed]),
    [['wave', 3, 5, 2, 8, 0, 0], ['many', null, 0, 10, 5, 0, 0], ['to_host', 5, 5, 1, 1, 100, 1]], 'rows');
});

scenario("a record tells how busy a device was", async () => {
  const lanes = [{ device: 'a', queue: 1, kind: 'kernels', waiting: 0 }, { device: 'a', queue: 2, kind: 'copies', waiting: 0 },
    { device: 'b', queue: 3, kind: 'kernels', waiting: 0 }];
  const trace = new Trace(view({ lanes, cells: [{ number: 1 }], spans: [{ start: 0, end: 20 }, { lane: 1, start: 10, end: 30 },
    { start: 50, end: 70, count: 4, busy: 10 }, { lane: 2, start: 60, end: 100 }, { lane: 2, start: 0, end: 50, status: 5 }] }));
  equal(['a', 'b', 'c'].map(device => trace.shareOf(device).busy), [0.4, 0.4, 0], 'shares');
  equal(new Trace().shareOf('a').busy, 0, 'of nothing');
});

scenario("the legend has the cells of memory that is seen", async () => {
  const samples = [[5 * MS, 9, 0, 0, 9, 1], [20 * MS, 7, 0, 0, 9, 4], [400 * MS, 0, 0, 0, 9, 6], [500 * MS, 3, 0, 0, 9, 8]];
  const trace = new Trace(view({ spans: [{ start: 30, end: 40, cell: 2 }], devices: [device({ samples })] }));
  equal([trace.cellsShown(), trace.cellsShown(trace.range())], [[2], [2, 4]], 'while the work ran');
  equal(trace.cellsShown(trace.memoryRange()), [1, 2, 4, 8], 'all; what holds nothing has no hue');
  const window = new Window({ memory: true });
  window.choose('all', trace);
  check(window.from <= 5 * MS && window.to >= 500 * MS, 'memory counts');
});

scenario("many queues leave room for the cell that is looked at", async () => {
  const lanes = Array.from({ length: 12 }, (_, i) => ['kernels', 'copies', 'host'].map(kind =>
    ({ device: 'host:cpu:0', queue: i + 1, kind, waiting: 0 }))).flat();
  const spans = lanes.map((lane, i) => ({ lane: i, start: i, end: i + 1, cell: 1, id: i + 1 })).filter((_, i) => i % 3 < 2);
  spans.push({ lane: 3, start: 100, end: 110, cell: 2, id: 99 }, { lane: 6, start: 200, end: 200, cell: 3, id: 100, status: 4 });
  const trace = new Trace(view({ lanes, spans }));
  const window = new Window();
  const shown = before => rowsOf(trace, window, before).rows;
  window.choose('cell', trace);
  check(window.from <= 100 * MS && window.to >= 110 * MS && window.to < 150 * MS, 'work that did not run is not looked at');
  equal(shown().map(row => row.text ?? row.lane.kind), ['host:cpu:0  queue 2', 'kernels', '11 more queues did nothing here'],
    'its rows');
  const rows = shown();
  window.pan(-0.1);
  equal(shown(rows).map(row => row.y), rows.map(row => row.y), 'they stay while somebody moves');
  window.choose('all', trace);
  equal(shown(rows).filter(row => row.lane).length, 24, 'lanes without work are left out');
  window.choose('cell', trace, 3);
  check(window.length >= 20000, 'an axis that can be read');
});

scenario("a queue that did nothing in the cell has no lane", async () => {
  const lanes = [1, 2, 3].map(queue => ({ device: 'host:cpu:0', queue, kind: 'kernels', waiting: 0 }));
  const spans = [{ lane: 0, start: 0, end: 1, cell: 1 }, { lane: 1, start: 5, end: 6, cell: 2 }, { lane: 2, start: 9, end: 10, cell: 3 }];
  const trace = new Trace(view({ lanes, spans }));
  const window = new Window();
  const names = () => rowsOf(trace, window).rows.map(row => row.text ?? row.lane.kind);
  window.choose('cell', trace);
  equal(names(), ['host:cpu:0  queue 3', 'kernels', '2 more queues did nothing here'], 'the last cell');
  window.choose('all', trace);
  equal(names().length, 6, 'all');
});

scenario("little memory looks like little", async () => {
  const { axisOf } = await import('../../python/labextension/static/chart.js');
  const top = (peak, limit) => axisOf(device({ peak, limit, samples: [[1, peak, 0, 0, peak, 1]] })) / 2 ** 20;
  equal(top(5.6 * 2 ** 20, 24 * 2 ** 30), 32, '5.6 MiB of 24 GiB');
  equal(top(728 * 2 ** 20, 24 * 2 ** 30), 1024, '728 MiB of them');
  check(top(1000 * 2 ** 20, 0) > 1000 * 1.2, 'there is room above');
});

scenario("a console beside the panel is no notebook", async () => {
  const { House } = await import('../../python/labextension/static/plugin.js');
  const find = (content, cell = 3, trace = {}) => House.prototype.find.call({ current: content && { content }, model: { trace } }, cell);
  const code = (executionCount, prompt = '') => ({ prompt, model: { type: 'code', executionCount } });
  equal([find({ widgets: [{}] }) ?? 'none', find(undefined) ?? 'none'], ['none', 'none'], 'a console, whose content has widgets, and nothing');
  const content = { model: { cells: [] }, widgets: [{ model: { type: 'markdown' } }, code(2), code(3), code(null, '*')] };
  const byNumber = new Map([[4, { running: true }]]);
  equal([3, 4, 5].map(cell => find(content, cell, { byNumber })), [2, 3, -1], 'in a notebook');
});

scenario("a part of the panel that fails does not stop the others", () => withModel(2, async model => {
  const { error } = console;
  const [told, updated] = [[], []];
  const broken = new Error('broken');
  model.listeners.add(() => { throw broken; });
  model.listeners.add(() => updated.push(1));
  console.error = (...words) => told.push(words.at(-1));
  try {
    model.changed();
  } finally {
    console.error = error;
  }
  equal([updated.length, told.length, told[0] === broken], [1, 1, true], 'the other is told, and so is the error');
}));

scenario("the menu's item is called what the documents call it", async () => {
  const read = name => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');
  const label = read('python/labextension/static/plugin.js').match(/label: '([^']*)',\s*caption/)[1];
  for (const page of ['README.md', 'docs/magics.md', 'notebooks/03-see-your-device.ipynb']) {
    equal(read(page).match(/\*View > ([^*]*)\*/)[1], label, page);
  }
});

// As much of a page as cards need.
class Node {
  style = {};
  dataset = {};
  attributes = {};
  children = [];
  textContent = '';
  classList = { toggle() {} };
  append(...children) { this.children.push(...children); }
  setAttribute(name, value) { this.attributes[name] = value; }
}

scenario("a card shows the name of its device once that is known", async () => {
  globalThis.document = { createElement: () => new Node() };
  const { Cards } = await import('../../python/labextension/static/cards.js');
  const cards = new Cards();
  cards.update([device({ name: 'opencl:gpu:0' })]);
  const card = cards.cards.get('opencl:gpu:0');
  equal(card.name.textContent, '', 'the name before');
  cards.update([device()]);
  equal([card.name.textContent, card.node.attributes['aria-label']], ['A processor', 'Device opencl:gpu:0, A processor'],
    'the name then');
});

await main(async () => ({ close: async () => {} }));
