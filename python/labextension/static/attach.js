// Displays that go on after the page was loaded anew. The application knows only those displays by name that it has
// seen begin; what it finds in a notebook's file has no name any more. The kernel writes the name into the metadata of
// the output, too, so an update that nobody else has taken finds its output here. Text and HTML move as timelines do.
import { Link, isDrupe } from './link.js';

const nameOf = output => output?.metadata?.drupe?.display;

// Outputs of a notebook's model with this name, as [list of outputs, index].
function* named(model, name) {
  for (const cell of model?.cells ?? []) {
    if (cell.type !== 'code') continue;
    for (let i = 0; i < cell.outputs.length; i++) {
      const found = nameOf(cell.outputs.get(i));
      if (found !== undefined && (name === undefined || found === name)) yield [cell.outputs, i];
    }
  }
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export class Attach {
  // `panel`: a notebook of the application.
  constructor(panel) {
    this.panel = panel;
    const { sessionContext } = panel;
    sessionContext.iopubMessage.connect((_, message) => this.take(message));
    sessionContext.kernelChanged.connect(() => this.refresh());
    this.refresh();
  }

  // The application is done with the message when it comes here.
  take({ header, content }) {
    const name = header.msg_type === 'update_display_data' && content.transient?.display_id;
    if (!name) return;
    const { data, metadata } = content;
    for (const [outputs, i] of named(this.panel.content?.model, name)) {
      const output = outputs.get(i);
      if (same(output.data, data) && same(output.metadata, metadata)) continue;
      outputs.set(i, { output_type: 'display_data', data, metadata });
    }
  }

  // What was shown when nobody was there to see it is shown once more.
  async refresh() {
    try {
      await Promise.all([this.panel.context.ready, this.panel.sessionContext.ready]);
      const kernel = this.panel.sessionContext.session?.kernel;
      const { done } = named(this.panel.content?.model).next();
      if (done || !kernel || !await isDrupe(kernel)) return;
      await new Link(kernel).ask('drupe/refresh');
    } catch (error) {
      console.debug('drupe:', error); // a kernel that has no displays, a notebook that was closed meanwhile
    }
  }
}
