// Outputs of type application/vnd.drupe.trace+json: the same timeline as in the panel, from what the output holds.
import { MemoryChart } from './chart.js';
import { element, setText } from './surface.js';
import { summary } from './summary.js';
import { Timeline } from './timeline.js';
import { Trace } from './trace.js';
import { Window } from './window.js';

export const TYPE = 'application/vnd.drupe.trace+json';

export async function plugins(shared) {
  const { Widget } = await shared('@lumino/widgets');

  class Output extends Widget {
    constructor(options) {
      super();
      this.addClass('drupe-output');
      this.options = options;
    }

    async renderModel(model) {
      try {
        this._show(model.data[TYPE]);
      } catch (error) {
        console.debug('drupe:', error);
        this._fallBack(model.data);
      }
    }

    // A new state of the same output changes what is there, so that zoom and hover stay.
    _show(view) {
      if (view?.version !== 1) throw new Error('not a trace that this can read');
      if (!this.trace) this._make();
      if (this.trace.isNew(view)) this.trace.clear();
      this.trace.merge(view, { whole: true });
      setText(this.head, summary(this.trace));
      this.timeline.update();
      this.memory.update();
    }

    _make() {
      this.trace = new Trace();
      this.window = new Window();
      this.window.mode = 'all';
      this.head = element('div', 'drupe-summary');
      this.timeline = new Timeline(this.trace, this.window, { wheel: 'modifier' });
      this.memory = new MemoryChart(this.trace, this.window);
      this.timeline.onCursor = ns => this.memory.setCursor(ns);
      this.memory.onCursor = ns => this.timeline.setCursor(ns);
      this.node.replaceChildren(this.head, this.timeline.node, this.memory.node);
    }

    // What other front-ends show.
    _fallBack(data) {
      this._drop();
      const html = data['text/html'];
      if (html !== undefined && this.options.sanitizer) {
        this.node.innerHTML = this.options.sanitizer.sanitize(String(html));
      } else {
        this.node.replaceChildren(element('pre', '', String(data['text/plain'] ?? '')));
      }
    }

    _drop() {
      this.timeline?.dispose();
      this.memory?.dispose();
      this.trace = null;
    }

    dispose() {
      this._drop();
      super.dispose();
    }
  }

  return [{
    id: 'drupe:trace',
    description: 'Shows timelines of devices in outputs.',
    rendererFactory: { safe: true, mimeTypes: [TYPE], createRenderer: options => new Output(options) },
    rank: 0,
    dataType: 'json'
  }];
}
