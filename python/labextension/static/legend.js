// A chip for each of the last cells, in its hue: those that worked, and those that the memory's amounts are drawn in.
// And what hatching means, where there is some.
import { element } from './surface.js';
import { goneText, plural } from './words.js';

const HATCHED = 'hatched: at some time in between; the driver does not report when';

export class Legend {
  // `onCell` is told of the cell whose chip is pressed, `isThere(cell)` tells whether the notebook has it; `memory`:
  // memory is drawn beside it; `most`: chips.
  constructor(trace, window, { onCell = null, isThere = () => true, memory = true, most = 24 } = {}) {
    Object.assign(this, { trace, window, onCell, isThere, memory, most });
    this.node = element('div', 'drupe-legend');
    this.node.setAttribute('role', 'group');
    this.node.setAttribute('aria-label', 'Cells');
  }

  update() {
    const all = this.trace.cellsShown(this.memory ? this.window.whole : null);
    const hatched = this.trace.hatched;
    const wanted = `${all.join()} ${hatched}`;
    if (this.shown !== wanted) {
      this.shown = wanted;
      const cells = all.slice(-this.most);
      const left = all.length - cells.length;
      const focused = this.node.contains(document.activeElement) ? document.activeElement.dataset.cell : undefined;
      this.node.replaceChildren(...cells.map(cell => this._chip(cell)));
      if (left) this.node.prepend(element('span', 'drupe-label', `after ${plural(left, 'earlier cell')}`));
      if (hatched) this.node.append(element('span', 'drupe-label', HATCHED));
      this.node.querySelector(`[data-cell="${focused}"]`)?.focus(); // a new chip takes nobody's place
    }
    for (const chip of this.node.querySelectorAll('.drupe-cell')) {
      const cell = Number(chip.dataset.cell);
      const gone = cell > 0 && !this.isThere(cell);
      chip.firstChild.style.backgroundColor = this.trace.colour(cell);
      chip.classList.toggle('drupe-gone', gone);
      chip.title = this._title(cell, gone);
    }
    this.node.hidden = all.length === 0;
  }

  _chip(cell) {
    const chip = element('button', 'drupe-cell', undefined, element('span', 'drupe-mark'), cell ? `[${cell}]` : 'none');
    chip.type = 'button';
    chip.dataset.cell = cell;
    chip.addEventListener('click', () => {
      if (this.trace.range(cell)) this.window.choose('cell', this.trace, cell);
      if (cell) this.onCell?.(cell);
    });
    return chip;
  }

  _title(cell, gone) {
    if (!cell) return 'Show work of no cell';
    if (gone) return goneText(cell);
    return `${this.trace.range(cell) ? 'Show cell' : 'Memory changed in cell'} [${cell}]`;
  }
}
