// The side panel: devices, timeline, memory over time, errors.
import { Cards } from './cards.js';
import { MemoryChart } from './chart.js';
import { ErrorList } from './errors.js';
import { Legend } from './legend.js';
import { element, setText } from './surface.js';
import { summary } from './summary.js';
import { Timeline } from './timeline.js';
import { Window } from './window.js';

const WORDS = {
  none: 'Open a notebook that runs on Drupe to see what its devices do.',
  other: "The kernel of this notebook is not Drupe's. The panel shows Drupe kernels only.",
  quiet: 'No device has worked yet. Run a cell that uses one: its kernels and copies appear here.',
  dead: 'The kernel has died. This is what its devices did last.'
};

export class Panel {
  // `isShown()`: a panel that nobody sees is not kept up to date.
  constructor(model, isShown, onCell) {
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
    this.head = element('div', 'drupe-summary');
    this.legend = new Legend(model.trace, this.window, { onCell });
    this.memoryPart = this._part('Memory', this.memory.node);
    this.body = element('div', 'drupe-body', undefined, this.cards.node,
      this._part('Timeline', this.head, this.timeline.node, this.legend.node), this.memoryPart, this.errors.node);
    this.node = element('div', 'drupe-panel', undefined, element('h2', 'drupe-title', 'Devices'), this.note, this.body);
    this.epoch = model.epoch;
    model.listeners.add(() => this.update());
    this.update();
  }

  _part(title, ...nodes) {
    const part = element('section', 'drupe-part', undefined, element('h3', 'drupe-heading', title), ...nodes);
    part.setAttribute('aria-label', title);
    return part;
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
    this.timeline.dispose();
    this.memory.dispose();
  }
}
