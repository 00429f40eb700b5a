// Made-up views (application/vnd.drupe.trace+json) for tests of the panel that need no kernel.

export const MS = 1e6;

// A view of spans given as { lane, start, end, cell, ... } in milliseconds; what is left out is ordinary.
export function view({ spans = [], lanes, devices, cells = [], ...rest } = {}) {
  const labels = [...new Set(spans.map(span => span.label ?? 'work'))];
  const places = [...new Set(spans.map(span => span.place).filter(Boolean))];
  const rows = spans.map((span, i) => [span.lane ?? 0, span.start * MS, span.end * MS, (span.busy ?? Math.max(0, span.end - span.start)) * MS,
    span.count ?? 1, span.bytes ?? 0, span.items ?? 0, span.cell ?? 1, labels.indexOf(span.label ?? 'work'),
    span.status ?? 1, span.exact ?? true ? 1 : 0, span.id ?? i + 1, span.place ? places.indexOf(span.place) : -1,
    ...(span.state === undefined ? [] : [span.state])]);
  return {
    version: 1, serial: 1, whole: false, now: 1000 * MS, unix: 1.7e12, from: 0, to: 1000 * MS, latest: 1, labels, places, spans: rows,
    lanes: lanes ?? [{ device: 'opencl:gpu:0', queue: 1, kind: 'kernels', waiting: 0 },
      { device: 'opencl:gpu:0', queue: 1, kind: 'copies', waiting: 0 }],
    devices: devices ?? [device()], cells: cells.map(cell), colours: ['#4477aa', '#ee6677', '#228833'], ...rest
  };
}

export function device(given = {}) {
  return { filter: 'opencl:gpu:0', name: 'A processor', backend: 'opencl', used: [1024, 0, 0], reserved: 2048, total: 2 ** 30,
    limit: 2 ** 29, peak: 4096, allocations: 1, busy: 0.5, waiting: 0, lost: false, samples: [], ...given };
}

export function cell(given = {}) {
  return { number: 1, running: false, began: 0, ended: 1, first: 0, last: 1, busy: 0, count: [0, 0, 0], bytes: [0, 0, 0],
    classNs: [0, 0, 0], waiting: 0, failed: 0, skipped: 0, cancelled: 0, missed: 0, memory: [0, 0, 0], colour: '#4477aa',
    ...given };
}

// Two cells on a device, one failure, some memory.
export function madeUp(more = {}) {
  const lanes = ['kernels', 'copies', 'host'].map(kind => ({ device: 'opencl:gpu:0', queue: 1, kind, waiting: 0 }));
  const spans = [];
  for (let i = 0; i < 40; ++i) {
    spans.push({ lane: i % 2, start: i * 5, end: i * 5 + 4, cell: i < 20 ? 1 : 2, label: i % 2 ? 'copy' : 'vadd', bytes: 2 ** 20,
      place: `cell [${i < 20 ? 1 : 2}], line 3`, status: i === 30 ? 3 : 1 });
  }
  const samples = spans.map((span, i) => [span.start * MS, (i % 10) * 2 ** 20, 2 ** 19, 0, 2 ** 24, span.cell]);
  return view({ lanes, spans, devices: [device({ samples, peak: 10 * 2 ** 20 })], whole: true,
    cells: [cell({ count: [10, 10, 0] }), cell({ number: 2, count: [10, 10, 0], failed: 1, colour: '#ee6677' })], ...more });
}

export const ERROR = { id: 1, unix: 1.7e12, cell: 1, place: 'cell [1], line 3', label: 'vadd', device: 'opencl:gpu:0', queue: 1,
  name: 'DEVICE_FAULT', text: 'it read past the end', arguments: 'x, n=16' };

// For Browser.answering().
export function answer(request, { view, error }) {
  return request.command === 'drupe/view' ? view : request.command === 'drupe/errors' ? { errors: [error], latest: 1 } : { version: 1 };
}
