// Cells of %%opencl, %%cl_kernel and %%native are C, in the editor too. The application gives all code cells of a
// notebook the type of its language, and again whenever the kernel tells that; what differs here is set anew then.
// Nothing of it is saved.

const C = 'text/x-csrc';
const MAGIC = /^\s*%%(opencl|cl_kernel|native)\b(?!.*(-x|--language)[ =]*(fortran|f90))/;

export const isC = source => MAGIC.test(source);

export class Highlight {
  // `panel`: a notebook of the application.
  constructor(panel) {
    this.content = panel.content;
    this.known = new WeakSet();
    this.content.modelChanged.connect(() => this._watch());
    this._watch();
  }

  _watch() {
    const cells = this.content.model?.cells;
    if (!cells) return;
    cells.changed.connect(() => this._all(cells));
    this._all(cells);
  }

  _all(cells) {
    for (const cell of cells) {
      if (cell.type !== 'code' || this.known.has(cell)) continue;
      this.known.add(cell);
      const fit = () => this.fit(cell);
      cell.contentChanged.connect(fit);
      cell.mimeTypeChanged.connect(fit);
      fit();
    }
  }

  fit(cell) {
    const language = this.content.codeMimetype;
    if (!/python/.test(language)) return;
    const wanted = isC(cell.sharedModel.getSource()) ? C : cell.mimeType === C ? language : cell.mimeType;
    if (cell.mimeType !== wanted) cell.mimeType = wanted;
  }
}
