// A span in words.
import { OVER, RUNNING, STATE, STATUS, ran } from './trace.js';
import { bytes, cellName, count, duration, plural, rate } from './words.js';

const NOT_KNOWN = 'the exact times are not known: %config Drupe.profile = True records them';

// { title, lines } of a span of a lane.
export function describe(span, lane, trace) {
  const length = trace.endOf(span) - span.start;
  const known = ran(span);
  const busy = span.busy || length;
  const title = span.count > 1 ? `${span.label} × ${count(span.count)}` : span.label;
  const lines = [span.place || cellName(span.cell)];
  if (span.state === RUNNING) lines.push(`${duration(length)} so far`);
  else if (span.state !== OVER) lines.push(`${STATE[span.state]} for ${duration(length)}`);
  else if (!known) lines.push(`some time within these ${duration(length)}`);
  else if (span.count > 1) lines.push(`${duration(busy)} of ${duration(length)}, ${duration(busy / span.count)} each`);
  else lines.push(duration(length));
  if (span.bytes > 0) {
    const moved = lane.kind === 'copies' && span.end && known;
    lines.push(moved ? `${bytes(span.bytes)}, ${rate(span.bytes, busy)}` : bytes(span.bytes));
  }
  if (span.items > 0) lines.push(plural(span.items, 'work-item'));
  lines.push(span.state === OVER ? STATUS[span.status] ?? 'unknown' : STATE[span.state]);
  if (!span.exact) lines.push(span.state === OVER ? NOT_KNOWN : 'it is not known whether it has started');
  lines.push(`${lane.device}, queue ${lane.queue}`);
  return { title, lines };
}
