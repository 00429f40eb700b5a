// A span in words.
import { STATUS } from './trace.js';
import { bytes, cellName, count, duration, plural, rate } from './words.js';

// { title, lines } of a span of a lane.
export function describe(span, lane, trace) {
  const length = trace.endOf(span) - span.start;
  const busy = span.busy || length;
  const title = span.count > 1 ? `${span.label} × ${count(span.count)}` : span.label;
  const lines = [span.place || cellName(span.cell)];
  const status = STATUS[span.status] ?? 'unknown';
  if (!span.end) lines.push(`${duration(length)} so far`);
  else if (span.count > 1) lines.push(`${duration(busy)} of ${duration(length)}, ${duration(busy / span.count)} each`);
  else lines.push(duration(length));
  if (span.bytes > 0) {
    const moved = lane.kind === 'copies' && span.end;
    lines.push(moved ? `${bytes(span.bytes)}, ${rate(span.bytes, busy)}` : bytes(span.bytes));
  }
  if (span.items > 0) lines.push(plural(span.items, 'work-item'));
  lines.push(status + (span.exact ? ", by the device's clock" : status === 'running' ? '' : ', as the host saw it'));
  lines.push(`${lane.device}, queue ${lane.queue}`);
  return { title, lines };
}
