// Made-up views (application/vnd.drupe.trace+json) for tests of the panel that need no kernel.

export const MS = 1e6;

// A view of spans given as { lane, start, end, cell, ... } in milliseconds; what is left out is ordinary.
export function view({ spans = [], lanes, devices, cells = [], ...rest } = {}) {
  const labels = [...new Set(spans.map(span => span.label ?? 'work'))];
  const places = [...new Set(spans.map(span => span.place).filter(Boolean))];
  const rows = spans.map((span, i) => [span.lane ?? 0, span.start * MS, span.end * MS, (span.busy ?? span.end - span.start) * MS,
    span.count ?? 1, span.bytes ?? 0, span.items ?? 0, span.cell ?? 1, labels.indexOf(span.label ?? 'work'),
    span.status ?? 1, span.exact ? 1 : 0, span.id ?? i + 1, span.place ? places.indexOf(span.place) : -1]);
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
