// Numbers as people read them: one unit each, three digits, the same width while they change.

const FIGURE_SPACE = '\u2007';

function scaled(value, step, units) {
  let i = 0;
  while (i < units.length - 1 && value >= step * 0.9995) {
    value /= step;
    ++i;
  }
  const digits = i === 0 && Number.isInteger(value) ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(digits)} ${units[i]}`;
}

// Bytes, in powers of 1024.
export const bytes = n => scaled(n, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);

// Nanoseconds.
export function duration(ns) {
  if (ns < 120e9) return scaled(ns, 1000, ['ns', 'µs', 'ms', 's']);
  const minutes = Math.floor(ns / 60e9);
  if (minutes < 120) return `${minutes} min ${Math.floor(ns / 1e9) % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// Bytes moved in a number of nanoseconds, in powers of 1000, as data sheets have them.
export function rate(n, ns) {
  return ns > 0 ? scaled(n / ns * 1e9, 1000, ['B/s', 'kB/s', 'MB/s', 'GB/s', 'TB/s']) : '';
}

// A share of 1; padded so that it does not move what is beside it.
export function percent(share) {
  const text = String(Math.round(Math.min(1, Math.max(0, share)) * 100));
  return `${FIGURE_SPACE.repeat(3 - text.length)}${text} %`;
}

// The same of what is busy and what may be: "61 %", or "≤61 %".
export function mostPercent({ busy, maybe = 0 }) {
  return maybe > 0 ? `≤${percent(busy + maybe).trimStart()}` : percent(busy);
}

export const count = n => Math.round(n).toLocaleString('en');

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

export const goneText = number => `Cell [${number}] is not in the notebook any more: it was deleted, or has run again.`;

export const cellName = number => (number ? `cell [${number}]` : 'no cell');

// The time of day of an instant in milliseconds since 1970.
export function clock(ms) {
  return new Date(ms).toLocaleTimeString([], { timeStyle: 'medium', hourCycle: 'h23' });
}

// The same, with its day where that is not today.
export function moment(ms) {
  const day = new Date(ms).toLocaleDateString([], { dateStyle: 'medium' });
  return day === new Date().toLocaleDateString([], { dateStyle: 'medium' }) ? clock(ms) : `${day}, ${clock(ms)}`;
}

// Marks of a time axis in [from, to]: about `most`, at round distances; each has ns and a text relative to `zero`.
export function ticks(from, to, most, zero) {
  const rough = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= rough);
  const marks = [];
  for (let k = Math.ceil((from - zero) / step); zero + k * step <= to; ++k) {
    marks.push({ ns: zero + k * step, text: axisText(k * step, step) });
  }
  return marks;
}

function axisText(ns, step) {
  if (ns === 0) return '0';
  const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
  const [size, unit] = units.find(([size]) => Math.abs(ns) >= size && step >= size / 1000) ?? units[3];
  const digits = Math.max(0, Math.min(3, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return `${(ns / size).toFixed(digits)} ${unit}`;
}

// A label of a kernel of several operations, "sqrt, multiply, add: lines 3-4", in two: where there is no place for all,
// the lines stay. Others are in the first part, and the second one is empty.
export function labelParts(label) {
  const at = label.search(/: (some of )?lines? \d/);
  return at < 0 ? [label, ''] : [label.slice(0, at), label.slice(at)];
}
