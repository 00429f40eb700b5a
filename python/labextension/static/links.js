// Links in outputs that lead to cells: `#cell-id=NAME`, which exported pages call the place of a cell, too.
const PLACE = '#cell-id=';

export class Links {
  // `tracker`: of the application's notebooks; `show(panel, index)` brings a cell into sight.
  constructor(tracker, show) {
    this.tracker = tracker;
    this.show = show;
    document.addEventListener('click', event => this.follow(event), true);
  }

  follow(event) {
    const href = event.target.closest?.('.jp-OutputArea-output a')?.getAttribute('href');
    if (!href?.startsWith(PLACE)) return;
    const panel = this.tracker.find(one => one.node.contains(event.target));
    const index = panel?.content.widgets.findIndex(cell => cell.model.id === href.slice(PLACE.length)) ?? -1;
    if (index < 0) return;
    event.preventDefault();
    this.show(panel, index);
  }
}
