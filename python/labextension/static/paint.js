// How a timeline is drawn.
import { FAILED, RUNNING, SKIPPED, WAITING, openText, ran } from './trace.js';
import { fitLabel, fitText, inkOn } from './surface.js';
import { plural, ticks } from './words.js';

export const GUTTER = 54;
export const AXIS = 20;
export const OVERVIEW = 20;
const HEADER = 17;
const HEIGHTS = { kernels: 20, copies: 13, host: 13 };
const GAP = 2;
const SMALL = 11;

// Lanes that are drawn: those with something in them; where one cell is looked at, its own. Who moves or zooms then
// keeps the rows that were there `before`.
function lanesShown(trace, window, before) {
  const used = trace.lanes.filter(lane => lane.spans.length > 0 || lane.waiting > 0);
  if (window.mode === 'all') return used;
  const seen = span => span.start <= window.to && trace.endOf(span) >= window.from;
  const kept = window.mode === 'free' ? used.filter(lane => before.some(row => row.lane === lane))
    : used.filter(lane => lane.waiting > 0 || lane.spans.some(seen));
  return kept.length > 0 ? kept : used;
}

// Rows from top to bottom: one with a `text` above the lanes of each queue, then one per lane, and perhaps a last text.
export function rowsOf(trace, window, before = []) {
  const rows = [];
  let y = AXIS;
  let queue = '';
  const lanes = lanesShown(trace, window, before);
  for (const lane of lanes) {
    const name = `${lane.device}  queue ${lane.queue}`;
    if (name !== queue) {
      queue = name;
      rows.push({ y, height: HEADER, text: name, queue: lane });
      y += HEADER;
    }
    const height = HEIGHTS[lane.kind] ?? 13;
    rows.push({ y, height, lane });
    y += height + GAP;
  }
  const name = lane => `${lane.device} ${lane.queue}`;
  const idle = new Set(trace.lanes.map(name)).size - new Set(lanes.map(name)).size;
  if (idle > 0) {
    rows.push({ y, height: HEADER, text: `${plural(idle, 'more queue')} did nothing here` });
    y += HEADER;
  }
  return { rows, height: Math.max(40, y - AXIS + 4) };
}

export function paint(context, width, theme, timeline) {
  const size = size => `${size}px ${theme.font}`;
  context.font = size(SMALL);
  context.textBaseline = 'middle';
  paintAxis(context, width, theme, timeline);
  for (const row of timeline.rows) {
    if (row.text) paintHeader(context, width, theme, row, timeline.trace);
    else paintLane(context, width, theme, row, timeline);
  }
  paintOverview(context, width, theme, timeline);
  if (timeline.cursor) {
    const x = Math.round(timeline.xOf(timeline.cursor)) + 0.5;
    line(context, theme.faint, x, AXIS - 4, x, timeline.surface.height - OVERVIEW);
  }
}

function line(context, colour, x0, y0, x1, y1) {
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

function paintAxis(context, width, theme, timeline) {
  const { window: seen } = timeline;
  context.textAlign = 'center';
  for (const { ns, text } of ticks(seen.from, seen.to, timeline.plot / 64, seen.zero)) {
    const x = Math.round(timeline.xOf(ns)) + 0.5;
    if (x < GUTTER) continue;
    line(context, theme.line, x, AXIS - 5, x, timeline.surface.height - OVERVIEW);
    context.fillStyle = theme.faint;
    const half = context.measureText(text).width / 2;
    context.fillText(text, Math.min(Math.max(x, GUTTER + half), width - half - 1), 8);
  }
  context.textAlign = 'left';
}

function paintHeader(context, width, theme, row, trace) {
  const lanes = trace.lanes.filter(lane => lane.device === row.queue?.device && lane.queue === row.queue?.queue);
  const open = openText([0, 1, 2, 3].map(state => lanes.reduce((sum, lane) => sum + lane.open[state], 0)));
  const text = open ? `${row.text}  ·  ${open}` : row.text;
  context.clearRect(0, row.y, width, row.height); // of the axis: the ground is another in outputs than in the panel
  context.fillStyle = row.queue ? theme.text : theme.faint;
  context.fillText(fitText(context, text, width - 4), 2, row.y + row.height / 2 + 1);
}

function paintLane(context, width, theme, row, timeline) {
  const { lane, y, height } = row;
  context.fillStyle = theme.band;
  context.globalAlpha = 0.5;
  context.fillRect(GUTTER, y, width - GUTTER, height);
  context.globalAlpha = 1;
  context.fillStyle = theme.faint;
  context.fillText(lane.kind, 2, y + height / 2 + 1);
  context.save();
  context.beginPath();
  context.rect(GUTTER, y - 1, width - GUTTER, height + 2);
  context.clip();
  paintSpans(context, width, theme, row, timeline);
  context.restore();
}

// Spans that are thinner than a pixel are drawn once per pixel and hue; failures come last, so none is hidden.
function paintSpans(context, width, theme, row, timeline) {
  const { lane, y, height } = row;
  const failed = [];
  let lastPixel = -1;
  let lastCell = -1;
  for (const span of lane.spans) {
    if (span.start > timeline.window.to) break;
    const left = timeline.xOf(span.start);
    const right = timeline.xOf(timeline.trace.endOf(span));
    if (right < GUTTER || left > width) continue;
    if (span.status === FAILED) failed.push(span);
    const thin = right - left < 1;
    if (thin && Math.floor(left) === lastPixel && span.cell === lastCell) continue;
    if (thin) [lastPixel, lastCell] = [Math.floor(left), span.cell];
    const box = { left: Math.max(left, GUTTER - 3), right: Math.min(right, width + 3), y, height };
    paintSpan(context, theme, span, lane, timeline, box);
  }
  for (const span of failed) {
    paintFailure(context, theme, timeline.xOf(span.start), timeline.xOf(timeline.trace.endOf(span)), y, height);
  }
  for (const span of [timeline.under, timeline.chosen?.span]) {
    if (!span || lane.byId.get(span.id) !== span) continue;
    const [left, right] = [timeline.xOf(span.start), timeline.xOf(timeline.trace.endOf(span))];
    context.strokeStyle = theme.text;
    context.lineWidth = 1.5;
    context.strokeRect(left - 0.5, y + 0.5, Math.max(2, right - left) + 1, height - 1);
  }
}

function paintSpan(context, theme, span, lane, timeline, { left, right, y, height }) {
  const colour = timeline.trace.colour(span.cell);
  const wide = Math.max(1, right - left - (right - left > 3 ? 0.5 : 0)); // neighbours stay apart
  const idle = span.status >= SKIPPED;
  if (idle || (lane.kind === 'host' && ran(span))) {
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.setLineDash(idle ? [3, 2] : []);
    context.strokeRect(left + 0.5, y + 1.5, Math.max(1, wide - 1), height - 3);
    context.setLineDash([]);
    return;
  }
  if (!ran(span)) {
    paintInterval(context, colour, span, left, wide, y, height);
    return;
  }
  context.fillStyle = colour;
  const length = timeline.trace.endOf(span) - span.start;
  const share = span.count > 1 && length > 0 ? Math.min(1, span.busy / length) : 1;
  if (share < 1) { // several with pauses between: as high as they are busy
    context.globalAlpha = 0.35;
    context.fillRect(left, y, wide, height);
    context.globalAlpha = 1;
  }
  const high = Math.max(3, height * share);
  context.fillRect(left, y + height - high, wide, high);
  if (span.state === RUNNING) paintStripes(context, theme.ground, left, wide, y, height);
  if (wide > 30 && height >= 16 && share > 0.5) {
    context.fillStyle = inkOn(colour);
    context.fillText(fitLabel(context, span.label, wide - 8), left + 4, y + height / 2 + 1);
  }
}

// Hatched: it ran some time in here, nobody knows when. Pale: it waits.
function paintInterval(context, colour, span, left, wide, y, height) {
  context.save();
  context.beginPath();
  context.rect(left, y, wide, height);
  context.clip();
  context.globalAlpha = 0.28;
  context.fillStyle = colour;
  context.fillRect(left, y, wide, height);
  context.globalAlpha = 1;
  const step = 6;
  const first = Math.floor((left - height) / step) * step; // stripes of neighbours continue each other
  if (span.state !== WAITING) {
    for (let x = first; x < left + wide; x += step) line(context, colour, x, y + height, x + height, y);
  }
  context.restore();
}

// What still runs has a striped end.
function paintStripes(context, colour, left, wide, y, height) {
  const from = Math.max(left, left + wide - 16);
  context.save();
  context.beginPath();
  context.rect(from, y, left + wide - from, height);
  context.clip();
  context.globalAlpha = 0.7;
  for (let x = from - height; x < left + wide; x += 6) line(context, colour, x, y + height, x + height, y);
  context.restore();
}

// Red and crossed: not by colour alone.
function paintFailure(context, theme, left, right, y, height) {
  const wide = Math.max(4, right - left);
  context.fillStyle = theme.error;
  context.fillRect(left, y, wide, height);
  const middle = left + wide / 2;
  const arm = Math.min(height, wide) / 2 - 1.5;
  if (arm < 2) return;
  line(context, '#ffffff', middle - arm, y + height / 2 - arm, middle + arm, y + height / 2 + arm);
  line(context, '#ffffff', middle - arm, y + height / 2 + arm, middle + arm, y + height / 2 - arm);
}

// Everything in one strip, with the part that is seen above.
function paintOverview(context, width, theme, timeline) {
  const { whole, from, to } = timeline.window;
  const top = timeline.surface.height - OVERVIEW + 6;
  const high = OVERVIEW - 10;
  const x = ns => GUTTER + (ns - whole.from) / Math.max(1, whole.to - whole.from) * timeline.plot;
  context.fillStyle = theme.faint;
  context.fillText('all', 2, top + high / 2 + 1);
  context.fillStyle = theme.band;
  context.fillRect(GUTTER, top, timeline.plot, high);
  context.save();
  context.beginPath();
  context.rect(GUTTER, top - 3, timeline.plot, high + 6);
  context.clip();
  for (const lane of timeline.trace.lanes) {
    let last = -2;
    for (const span of lane.spans) {
      const left = x(span.start);
      const right = Math.max(left + 1, x(timeline.trace.endOf(span)));
      if (right < last + 1 && span.status !== FAILED) continue;
      last = right;
      context.fillStyle = span.status === FAILED ? theme.error : timeline.trace.colour(span.cell);
      context.globalAlpha = ran(span) || span.status === FAILED ? 1 : 0.35;
      context.fillRect(left, top, right - left, high);
      context.globalAlpha = 1;
    }
  }
  const [left, right] = [Math.max(GUTTER, x(from)), Math.min(GUTTER + timeline.plot, x(to))];
  context.strokeStyle = theme.text;
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, top - 1.5, Math.max(4, right - left - 1), high + 3);
  context.restore();
}
