// The timeline: a row for the kernels, the copies and the host functions of each queue, in the hue of their cells.
// Drag or scroll to move, wheel to zoom, hover to read; all of it by keyboard too.
import { Surface, button, element, setText } from './surface.js';
import { Tip } from './tip.js';
import { describe } from './describe.js';
import { AXIS, GUTTER, OVERVIEW, paint, rowsOf } from './paint.js';
import { duration } from './words.js';

const NEAR = 4; // pixels that a span may be missed by

export class Timeline {
  // `wheel`: 'plain', or 'modifier' inside of a page that scrolls: the wheel zooms with Ctrl, or once it was clicked.
  constructor(trace, window, { wheel = 'plain', onCell = null } = {}) {
    Object.assign(this, { trace, window, wheel, onCell });
    this.node = element('div', 'drupe-timeline');
    this.surface = new Surface((context, width, theme) => this._draw(context, width, theme));
    this.canvas = this.surface.node;
    this.tip = new Tip();
    this.rows = [];
    this.chosen = null;
    this._makeBar();
    this.voice = element('div', 'drupe-voice');
    this.voice.setAttribute('aria-live', 'polite');
    this.node.append(this.bar, this.canvas, this.voice);
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'application');
    this.canvas.setAttribute('aria-roledescription', 'timeline');
    this._listen();
    this.window.listeners.add(this.redraw = () => this._rangeChanged());
    this.update();
  }

  dispose() {
    clearTimeout(this.hintTimer);
    this.window.listeners.delete(this.redraw);
    this.surface.dispose();
    this.tip.dispose();
  }

  // The trace has changed.
  update() {
    this.window.follow(this.trace);
    this._rangeChanged();
    this.canvas.setAttribute('aria-label', this._summary());
  }

  _setRows() {
    const { rows, height } = rowsOf(this.trace, this.window, this.rows);
    this.rows = rows;
    this.surface.setHeight(AXIS + height + OVERVIEW);
  }

  // Mark an instant that is pointed at elsewhere.
  setCursor(ns) {
    this.cursor = ns;
    this.surface.update();
  }

  _summary() {
    const spans = this.trace.lanes.reduce((sum, lane) => sum + lane.spans.length, 0);
    return `Timeline with ${this.trace.lanes.length} lanes and ${spans} spans. Arrow keys move, plus and minus zoom, ` +
      'Home shows all, N and P go from span to span.';
  }

  _makeBar() {
    const { trace, window } = this;
    this.buttons = {
      cell: button('Last cell', 'Show the cell that worked last, and follow', () => window.choose('cell', trace)),
      all: button('All', 'Show everything that is remembered', () => window.choose('all', trace))
    };
    this.range = element('span', 'drupe-range');
    this.bar = element('div', 'drupe-bar', undefined, this.buttons.cell, this.buttons.all, this.range,
      button('−', 'Zoom out', () => window.zoom(1.6), 'drupe-narrow'),
      button('+', 'Zoom in', () => window.zoom(1 / 1.6), 'drupe-narrow'));
  }

  _rangeChanged() {
    this._setRows();
    const chosen = this.window.cell === undefined ? this.window.mode : 'free';
    for (const [mode, node] of Object.entries(this.buttons)) node.setAttribute('aria-pressed', String(mode === chosen));
    setText(this.range, this.hint ?? duration(this.window.length));
    this.surface.update();
  }

  _draw(context, width, theme) {
    this.width = width;
    paint(context, width, theme, this);
  }

  // --- Where things are -------------------------------------------------------------------------------------

  get plot() {
    return Math.max(1, (this.width ?? 300) - GUTTER - 4);
  }

  timeAt(x) {
    return this.window.from + (x - GUTTER) / this.plot * this.window.length;
  }

  xOf(ns) {
    return GUTTER + (ns - this.window.from) / this.window.length * this.plot;
  }

  // The span at a point of the canvas: { span, row }, or null.
  spanAt(x, y) {
    const row = this.rows.find(row => row.lane && y >= row.y && y < row.y + row.height);
    if (!row || x < GUTTER) return null;
    let best = null;
    let nearest = NEAR + 1;
    for (const span of row.lane.spans) {
      const [left, right] = [this.xOf(span.start), this.xOf(this.trace.endOf(span))];
      if (left > x + NEAR) break;
      const distance = x < left ? left - x : x > right ? x - right : 0;
      if (distance < nearest || (distance === nearest && distance === 0)) [best, nearest] = [span, distance];
    }
    return best && { span: best, row };
  }

  // --- What people do ---------------------------------------------------------------------------------------

  _listen() {
    this.canvas.addEventListener('wheel', event => this._wheel(event), { passive: false });
    this.canvas.addEventListener('pointerdown', event => this._down(event));
    this.canvas.addEventListener('pointermove', event => this._move(event));
    this.canvas.addEventListener('pointerup', event => this._up(event));
    this.canvas.addEventListener('pointercancel', () => { this.drag = null; });
    this.canvas.addEventListener('pointerleave', () => this._leave());
    this.canvas.addEventListener('dblclick', () => this.window.choose('all', this.trace));
    this.canvas.addEventListener('keydown', event => this._key(event));
    this.canvas.addEventListener('blur', () => this._choose(null));
  }

  _point(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  _wheel(event) {
    const free = this.wheel === 'plain' || event.ctrlKey || event.metaKey || document.activeElement === this.canvas;
    if (!free) {
      this._hint('Ctrl + wheel zooms');
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    const { x } = this._point(event);
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.shiftKey ? event.deltaY : 0;
    const turn = Math.max(-240, Math.min(240, event.deltaY * unit));
    if (sideways) this.window.pan(sideways * unit / this.plot);
    else this.window.zoom(Math.exp(turn * 0.002), (x - GUTTER) / this.plot);
    this._hover(event);
  }

  _hint(text) {
    this.hint = text;
    clearTimeout(this.hintTimer);
    this.hintTimer = setTimeout(() => { this.hint = undefined; this._rangeChanged(); }, 1500);
    this._rangeChanged();
  }

  _down(event) {
    if (event.button !== 0) return;
    const point = this._point(event);
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { x: point.x, began: point.x, overview: point.y >= this.surface.height - OVERVIEW, moved: false };
    if (this.drag.overview) this._toOverview(point.x);
    this.tip.hide();
  }

  _toOverview(x) {
    const { from, to } = this.window.whole;
    this.window.centre(from + (x - GUTTER) / this.plot * (to - from));
  }

  _move(event) {
    if (!this.drag) return this._hover(event);
    const { x } = this._point(event);
    if (Math.abs(x - this.drag.began) > 3) this.drag.moved = true;
    if (!this.drag.moved) return undefined;
    if (this.drag.overview) this._toOverview(x);
    else this.window.pan((this.drag.x - x) / this.plot);
    this.drag.x = x;
    this.canvas.classList.add('drupe-dragged');
    return undefined;
  }

  _up(event) {
    const { drag } = this;
    this.drag = null;
    this.canvas.classList.remove('drupe-dragged');
    if (!drag || drag.moved || drag.overview) return;
    const { x, y } = this._point(event);
    const found = this.spanAt(x, y);
    if (found && found.span.cell) this.onCell?.(found.span.cell);
  }

  _hover(event) {
    const { x, y } = this._point(event);
    this.cursor = x >= GUTTER ? this.timeAt(x) : null;
    const found = this.spanAt(x, y);
    this.canvas.classList.toggle('drupe-over', Boolean(found && this.onCell && found.span.cell));
    this.under = found?.span ?? null;
    if (found) this._tell(found, event.clientX, event.clientY);
    else this.tip.hide();
    this.onCursor?.(this.cursor);
    this.surface.update();
  }

  _tell({ span, row }, x, y) {
    const { title, lines } = describe(span, row.lane, this.trace);
    this.tip.show(x, y, this.trace.colour(span.cell), title, lines);
  }

  _leave() {
    this.cursor = null;
    this.under = null;
    if (!this.chosen) this.tip.hide();
    this.onCursor?.(null);
    this.surface.update();
  }

  _key(event) {
    const actions = {
      ArrowLeft: () => this.window.pan(-0.15), ArrowRight: () => this.window.pan(0.15),
      '+': () => this.window.zoom(1 / 1.5), '=': () => this.window.zoom(1 / 1.5), '-': () => this.window.zoom(1.5),
      Home: () => this.window.choose('all', this.trace), End: () => this.window.choose('cell', this.trace),
      n: () => this._step(1), p: () => this._step(-1), ArrowDown: () => this._row(1), ArrowUp: () => this._row(-1),
      Enter: () => this.chosen?.span.cell && this.onCell?.(this.chosen.span.cell),
      Escape: () => this._choose(null)
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  // The next span of the chosen row, or of the first that has one.
  _step(by) {
    const rows = this.rows.filter(row => row.lane?.spans.length);
    if (rows.length === 0) return;
    const row = rows.find(row => row.lane === this.chosen?.row.lane) ?? rows[0];
    const { spans } = row.lane;
    const at = spans.findIndex(span => span.id === this.chosen?.span.id);
    const from = at >= 0 ? at : spans.findIndex(span => span.start >= this.window.from) - by;
    this._choose({ row, span: spans[Math.min(spans.length - 1, Math.max(0, from + by))] });
  }

  _row(by) {
    const rows = this.rows.filter(row => row.lane?.spans.length);
    if (rows.length === 0) return;
    const at = rows.findIndex(row => row.lane === this.chosen?.row.lane);
    const row = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
    const near = this.chosen?.span.start ?? this.window.from;
    const span = row.lane.spans.find(span => span.start >= near) ?? row.lane.spans[row.lane.spans.length - 1];
    this._choose({ row, span });
  }

  _choose(found) {
    this.chosen = found;
    if (!found) {
      this.tip.hide();
      this.surface.update();
      return;
    }
    const { span, row } = found;
    this.window.reveal(span.start, this.trace.endOf(span));
    const box = this.canvas.getBoundingClientRect();
    const x = Math.min(this.width - 8, Math.max(GUTTER, this.xOf(span.start)));
    this._tell(found, box.left + x, box.top + row.y + row.height);
    const { title, lines } = describe(span, row.lane, this.trace);
    setText(this.voice, [title, ...lines].join(', '));
    this.surface.update();
  }
}
