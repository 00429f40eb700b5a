// What bears the same name, added up: the table below a timeline.
import { FAILED, OVER, ran } from './trace.js';
import { element } from './surface.js';
import { bytes, count, duration, labelParts, plural, rate } from './words.js';

const HEADS = ['label', '', 'cells', 'count', 'device time', 'share', 'bytes', 'rate'];

// Rows { label, kind, first, last, count, busy, maybe, untimed, bytes, failed } of a trace, the longest first; as
// engine/view/sums.c has them.
export function rowsByLabel(trace) {
  const rows = new Map();
  for (const lane of trace.lanes) {
    for (const span of lane.spans) {
      const key = `${lane.kind} ${span.label}`;
      const row = rows.get(key) ?? { label: span.label, kind: lane.kind, first: Infinity, last: 0, count: 0, busy: 0,
        maybe: 0, untimed: 0, bytes: 0, failed: 0 };
      rows.set(key, row);
      if (span.cell) row.first = Math.min(row.first, span.cell);
      row.last = Math.max(row.last, span.cell);
      row.count += span.count;
      if (ran(span)) row.busy += span.busy;
      else if (span.state === OVER) {
        row.untimed += span.count;
        row.maybe += span.end - span.start;
      }
      row.bytes += span.bytes;
      row.failed += span.status === FAILED ? 1 : 0;
    }
  }
  return [...rows.values()].sort((a, b) => b.busy + b.maybe - a.busy - a.maybe || b.count - a.count);
}

function cellsOf({ first, last }) {
  return last === 0 ? '-' : first === last ? `[${last}]` : `[${first}-${last}]`;
}

// What shares are of; 0 where not all of it is known: shares of a part would look like shares of all.
function wholeOf(rows) {
  return rows.some(row => row.untimed > 0) ? 0 : rows.reduce((sum, row) => sum + row.busy, 0);
}

function timeOf(row) {
  if (row.untimed === 0) return duration(row.busy);
  return row.busy > 0 ? `≥ ${duration(row.busy)}` : 'unknown';
}

function figures(row, total) {
  const moved = row.kind === 'copies';
  const share = total > 0 ? row.busy / total * 100 : 0;
  const percent = share > 0 && share < 0.1 ? '<0.1' : share < 9.95 ? share.toFixed(1) : share.toFixed(0);
  return [cellsOf(row), count(row.count), timeOf(row), total > 0 ? `${percent} %` : '-', moved ? bytes(row.bytes) : '-',
    moved && row.busy > 0 && row.untimed === 0 ? rate(row.bytes, row.busy) : '-'];
}

export class Table {
  // `most`: rows.
  constructor(trace, most = 5) {
    Object.assign(this, { trace, most });
    this.body = element('tbody');
    this.more = element('div', 'drupe-label');
    const heads = HEADS.map((text, i) => element('th', i > 1 ? 'drupe-number' : '', text));
    this.node = element('div', 'drupe-table', undefined,
      element('table', '', undefined, element('thead', '', undefined, element('tr', '', undefined, ...heads)),
        this.body), this.more);
  }

  update() {
    const rows = rowsByLabel(this.trace);
    const total = wholeOf(rows);
    this.node.hidden = rows.length === 0;
    this.body.replaceChildren(...rows.slice(0, this.most).map(row => this._row(row, total)));
    this.more.textContent = rows.length > this.most ? `and ${plural(rows.length - this.most, 'more label')}` : '';
  }

  _row(row, total) {
    const label = element('td', 'drupe-table-label', undefined,
      ...labelParts(row.label).map(part => element('span', '', part)));
    label.title = row.label;
    if (row.failed) label.append(element('span', 'drupe-table-failed', `${count(row.failed)} failed`));
    const fill = element('div', 'drupe-table-fill');
    fill.style.width = `${total > 0 ? Math.min(100, row.busy / total * 100) : 0}%`;
    const bar = element('td', 'drupe-table-bar', undefined, element('div', 'drupe-table-track', undefined, fill));
    const cells = figures(row, total).map(text => element('td', 'drupe-number', text));
    return element('tr', '', undefined, label, bar, ...cells);
  }
}
