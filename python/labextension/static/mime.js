// Outputs of type application/vnd.drupe.trace+json: the same timeline as in the panel, from what the output holds. The
// metadata {type: {kind, live}} tell what the output is about (events, table, memory or dashboard), and if more is to
// come.
import { Cards } from './cards.js';
import { MemoryChart } from './chart.js';
import { Legend } from './legend.js';
import { element, setText } from './surface.js';
import { summary } from './summary.js';
import { Table } from './table.js';
import { Timeline } from './timeline.js';
import { Trace } from './trace.js';
import { Window } from './window.js';
import { moment } from './words.js';

const NOTHING = {
  events: 'No work on a device is known of here.',
  memory: 'No device has been used.',
  dashboard: 'No device has worked yet. What the next cells do appears here.'
};

const STILL = 10000; // ms without a new state, after which one that was to be followed by others tells its time

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
        this._show(model.data[TYPE], model.metadata?.[TYPE] ?? {});
      } catch (error) {
        console.debug('drupe:', error);
        this._fallBack(model.data);
      }
    }

    // A new state of the same output changes what is there, so that zoom and hover stay.
    _show(view, { kind, live }) {
      if (view?.version !== 1) throw new Error('not a trace that this reads');
      if (!this.trace) this._make(kind);
      if (this.trace.isNew(view)) this.trace.clear();
      this.trace.merge({ ...view, whole: true });
      const { trace } = this;
      const nothing = trace.empty && !trace.memoryRange();
      this._head(nothing ? NOTHING[kind] ?? NOTHING.events : summary(trace), view.unix, live);
      // A record says how busy the devices were, not that they are idle now, or were busy when it was drawn.
      this.cards.update(live ? trace.devices
        : trace.devices.map(device => ({ ...device, ...trace.shareOf(device.filter) })));
      this.timeline.node.hidden = trace.empty || kind === 'table';
      this.timeline.update();
      this.memory.update();
      this.legend.update();
      this.table.update();
    }

    _head(text, unix, live) {
      const known = this.unix !== undefined;
      const stale = () => setText(this.head, `as of ${moment(unix)}: ${text}`);
      clearTimeout(this.timer);
      this.unix = unix;
      setText(this.head, text);
      if (live && !known && Date.now() - unix > STILL) stale();
      else if (live) this.timer = setTimeout(stale, STILL);
    }

    _make(kind) {
      this.trace = new Trace();
      this.window = new Window({ memory: kind === 'memory' });
      this.window.mode = 'all';
      this.head = element('div', 'drupe-summary');
      this.cards = new Cards();
      this.timeline = new Timeline(this.trace, this.window, { wheel: 'modifier' });
      this.memory = new MemoryChart(this.trace, this.window);
      this.timeline.onCursor = ns => this.memory.setCursor(ns);
      this.memory.onCursor = ns => this.timeline.setCursor(ns);
      this.legend = new Legend(this.trace, this.window, { memory: kind !== 'events' });
      this.table = new Table(this.trace, kind === 'table' ? 40 : 5); // as the frames have it
      const [cards, timeline, memory] = [this.cards.node, this.timeline.node, this.memory.node];
      const [legend, table] = [this.legend.node, this.table.node];
      const orders = { events: [timeline, legend, table], table: [table], memory: [cards, memory, timeline, legend],
        dashboard: [cards, timeline, memory, legend] };
      this.node.replaceChildren(this.head, ...orders[kind] ?? [timeline, memory, legend]);
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
      clearTimeout(this.timer);
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
