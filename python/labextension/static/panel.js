// The side panel: errors, devices, timeline, memory over time. What grows with the session is bounded, so that the rest
// keeps its place.
import { Cards } from './cards.js';
import { MemoryChart } from './chart.js';
import { ErrorList } from './errors.js';
import { leaseText } from './lease.js';
import { Legend } from './legend.js';
import { element, setText } from './surface.js';
import { summary } from './summary.js';
import { Timeline } from './timeline.js';
import { Window } from './window.js';
import { goneText } from './words.js';

const WORDS = {
  none: 'Open a notebook that runs on Drupe to see what its devices do.',
  other: "The kernel of this notebook is not Drupe's. The panel shows Drupe kernels only.",
  quiet: 'No device has worked yet. Run a cell that uses one: its kernels and copies appear here.',
  dead: 'The kernel has died. This is what its devices did last.'
};

const CHIPS = 8;
const SOON = 10 * 60 * 1000; // ms before its end in which a lease stands out
const SAID = 8000; // ms that a sentence stays

export class Panel {
  // `isShown()`: a panel that nobody sees is not kept up to date. `onCell(cell)` goes there; false: it is gone.
  // `isThere(cell)`: whether it would.
  constructor(model, isShown, goTo, isThere) {
    const onCell = cell => { if (!goTo(cell)) this.say(goneText(cell)); };
    this.model = model;
    this.isShown = isShown;
    this.window = new Window();
    this.cards = new Cards();
    this.timeline = new Timeline(model.trace, this.window, { onCell });
    this.memory = new MemoryChart(model.trace, this.window);
    this.timeline.onCursor = ns => this.memory.setCursor(ns);
    this.memory.onCursor = ns => this.timeline.setCursor(ns);
    this.errors = new ErrorList(onCell);
    this.note = element('p', 'drupe-note');
    this.note.setAttribute('role', 'status');
    this.lease = element('p', 'drupe-lease');
    this.lease.setAttribute('role', 'status');
    this.head = element('div', 'drupe-summary');
    this.legend = new Legend(model.trace, this.window, { onCell, isThere, most: CHIPS });
    this.memoryPart = this._part('Memory', this.memory.node);
    this.body = element('div', 'drupe-body', undefined, this.errors.node, this.cards.node,
      this._part('Timeline', this.head, this.timeline.node, this.legend.node), this.memoryPart);
    this.said = element('p', 'drupe-said');
    this.said.setAttribute('role', 'status');
    this.node = element('div', 'drupe-panel', undefined, element('h2', 'drupe-title', 'Devices'), this.lease, this.note,
      this.body, this.said);
    this.epoch = model.epoch;
    this.said.hidden = true;
    model.listeners.add(() => this.update());
    this.update();
  }

  _part(title, ...nodes) {
    const part = element('section', 'drupe-part', undefined, element('h3', 'drupe-heading', title), ...nodes);
    part.setAttribute('aria-label', title);
    return part;
  }

  // Tell something for a while, below all that is there.
  say(text) {
    setText(this.said, text);
    this.said.hidden = !text;
    clearTimeout(this.saidTimer);
    if (text) this.saidTimer = setTimeout(() => this.say(''), SAID);
    this.legend.update();
  }

  update() {
    const { model } = this;
    if (!this.isShown()) return;
    if (model.epoch !== this.epoch) { // another kernel, or another life of it
      this.epoch = model.epoch;
      this.errors.clear();
      this.window.mode = 'cell';
      this.window.cell = undefined;
    }
    setText(this.lease, leaseText(model.lease, Date.now() / 1000));
    this.lease.hidden = !model.lease;
    const { state, ends } = model.lease ?? {};
    this.lease.classList.toggle('drupe-near', state === 'ended' || (ends && ends * 1000 < Date.now() + SOON));
    this.body.hidden = model.trace.devices.length === 0 && model.trace.empty && !model.errors.length;
    const words = WORDS[model.state] ?? (this.body.hidden ? WORDS.quiet : '');
    setText(this.note, words);
    this.note.hidden = !words;
    if (this.body.hidden) return;
    this.cards.update(model.trace.devices);
    setText(this.head, summary(model.trace, { memory: false })); // the cards show it
    this.head.title = this.head.textContent;
    this.timeline.update();
    this.memory.update();
    this.memoryPart.hidden = this.memory.node.hidden;
    this.legend.update();
    this.errors.add(model.errors, model.errorCount);
  }

  dispose() {
    clearTimeout(this.saidTimer);
    this.timeline.dispose();
    this.memory.dispose();
  }
}
