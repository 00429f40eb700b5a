// The number that matters, in the first line.
import { sum } from './chart.js';
import { bytes, count, duration, plural } from './words.js';

function busyText({ busy, maybe }) {
  if (!maybe) return `${duration(busy)} busy`;
  return busy ? `${duration(busy)} to ${duration(busy + maybe)} busy` : `at most ${duration(maybe)} busy`;
}

export function summary(trace, { memory = true } = {}) {
  const total = trace.sums();
  const parts = [];
  const whole = trace.range();
  if (whole) parts.push(busyText(total));
  if (total.failed > 0) parts.push(`${count(total.failed)} failed`);
  if (total.kernels > 0) parts.push(plural(total.kernels, 'kernel'));
  if (total.moved > 0) parts.push(`${bytes(total.moved)} copied`);
  const used = sum(trace.devices.map(device => sum(device.used)));
  if (memory && used > 0) parts.push(`${bytes(used)} in use`);
  if (total.missed > 0) parts.push(`${plural(total.missed, 'submission')} not seen`);
  return parts.join(' · ') || 'no work';
}
