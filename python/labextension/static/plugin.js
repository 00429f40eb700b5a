// The plugin: puts panel, status item and command into JupyterLab or Notebook 7.
import { Attach } from './attach.js';
import { Highlight } from './highlight.js';
import { Links } from './links.js';
import { Model } from './model.js';
import { Panel } from './panel.js';
import { StatusItem } from './status.js';

const COMMAND = 'drupe:show-panel';
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24"><g class="jp-icon3" fill="#616161">
<path d="M3 4h8v4H3zM13 4h8v4h-8zM3 10h13v4H3zM18 10h3v4h-3zM3 16h5v4H3zM10 16h11v4H10z"/></g></svg>`;

export async function plugins(shared) {
  const [notebook, statusbar, apputils, application, mainmenu, consoles, ui, { Widget }] = await Promise.all([
    '@jupyterlab/notebook', '@jupyterlab/statusbar', '@jupyterlab/apputils', '@jupyterlab/application',
    '@jupyterlab/mainmenu', '@jupyterlab/console', '@jupyterlab/ui-components', '@lumino/widgets'].map(shared));
  const wishes = [statusbar?.IStatusBar, apputils?.ICommandPalette, application?.ILayoutRestorer, mainmenu?.IMainMenu,
    consoles?.IConsoleTracker];
  return [{
    id: 'drupe:panel',
    description: 'Shows what the devices of a Drupe kernel do.',
    autoStart: true,
    requires: [notebook.INotebookTracker],
    optional: wishes.filter(Boolean),
    activate: (app, tracker, ...services) => {
      const given = new Map(wishes.filter(Boolean).map((token, i) => [token, services[i]]));
      const [bar, palette, restorer, menu, consoleTracker] = wishes.map(token => token && given.get(token));
      new House(app, tracker, { bar, palette, restorer, menu, consoleTracker, Widget, LabIcon: ui?.LabIcon });
    }
  }];
}

export class House {
  constructor(app, tracker, parts) {
    Object.assign(this, { app, tracker, parts });
    this.model = new Model(() => (this.widget?.isVisible ? 2 : this._statusSeen() ? 1 : 0));
    this._makePanel();
    this._makeCommand();
    this._makeStatus();
    new Links(tracker, (panel, index) => this.showCell(panel, index));
    this.follow = this.follow.bind(this);
    this.closed = this.closed.bind(this);
    const opened = panel => {
      new Attach(panel);
      new Highlight(panel);
    };
    tracker.forEach(opened);
    tracker.widgetAdded.connect((_, panel) => opened(panel));
    for (const one of [tracker, parts.consoleTracker]) {
      one?.currentChanged.connect((_, widget) => this._current(widget));
    }
    this._current(tracker.currentWidget ?? parts.consoleTracker?.currentWidget);
  }

  _makePanel() {
    const { Widget, LabIcon, restorer } = this.parts;
    this.panel = new Panel(this.model, () => Boolean(this.widget?.isVisible), cell => this.goTo(cell),
      cell => this.find(cell) !== -1);
    const widget = new Widget({ node: this.panel.node });
    widget.id = 'drupe-panel';
    widget.title.caption = 'Devices (Drupe)';
    if (LabIcon) widget.title.icon = new LabIcon({ name: 'drupe:devices', svgstr: ICON });
    else widget.title.label = 'Devices';
    widget.node.setAttribute('role', 'region');
    widget.node.setAttribute('aria-label', 'Devices of the kernel');
    widget.onAfterShow = () => {
      this.panel.update();
      this.model.poller.touch();
      this.model.poller.wake();
    };
    this.widget = widget;
    this.app.shell.add(widget, 'right', { rank: 950, type: 'Drupe' });
    restorer?.add(widget, widget.id);
  }

  _makeCommand() {
    const { palette, menu } = this.parts;
    this.app.commands.addCommand(COMMAND, {
      label: 'Show Devices',
      caption: 'Show what the devices of the kernel do',
      execute: () => this.show(),
      describedBy: { args: { type: 'object', properties: {} } }
    });
    palette?.addItem({ command: COMMAND, category: 'Drupe' });
    menu?.viewMenu.addGroup([{ command: COMMAND }], 20);
  }

  show() {
    const { shell } = this.app;
    if (!this.widget.isVisible) shell.expandRight?.(this.widget.id);
    shell.activateById(this.widget.id);
  }

  // In the status bar; where there is none (Notebook 7), beside the kernel's name at the top.
  _makeStatus() {
    const { bar, Widget } = this.parts;
    this.status = new StatusItem(this.model, () => this.show());
    const widget = new Widget({ node: this.status.node });
    widget.id = 'drupe-status';
    this.statusWidget = widget;
    if (bar) {
      const item = { item: widget, align: 'left', rank: 30, isActive: () => this.status.shown };
      const told = new Set();
      item.activeStateChanged = { connect: slot => told.add(slot), disconnect: slot => told.delete(slot) };
      this.status.onShown = () => told.forEach(slot => slot());
      bar.registerStatusItem('drupe:status', item);
    } else {
      this.status.onShown = () => widget.setHidden(!this.status.shown);
      widget.setHidden(!this.status.shown);
      this.app.shell.add(widget, 'menu', { rank: 9000 });
    }
  }

  _statusSeen() {
    return this.statusWidget?.isAttached && this.status.node.offsetParent !== null || this.model.state === 'quiet';
  }

  _current(widget) {
    if (!widget || widget === this.current) return; // the last notebook stays in sight
    const { current } = this;
    current?.sessionContext?.kernelChanged.disconnect(this.follow);
    current?.disposed.disconnect(this.closed);
    this.current = widget;
    widget.sessionContext.kernelChanged.connect(this.follow);
    widget.disposed.connect(this.closed);
    this.follow();
  }

  closed() {
    this.current = null;
    this.model.watch(null);
  }

  follow() {
    this.model.watch(this.current?.sessionContext.session?.kernel ?? null);
  }

  // Where the cell with this execution count stands; -1: nowhere; undefined: this is no notebook (the content of a
  // console has widgets, too, but no cells). A cell that runs has no count in the notebook yet.
  find(cell) {
    const content = this.current?.content;
    const cells = content?.model?.cells ? content.widgets : undefined;
    const index = cells?.findIndex(one => one.model.type === 'code' && one.model.executionCount === cell);
    if (index !== -1 || !this.model.trace.byNumber?.get(cell)?.running) return index;
    return cells.findIndex(one => one.model.type === 'code' && one.model.executionCount === null
      && (one.model.executionState === 'running' || one.prompt === '*'));
  }

  // Bring it into sight; false when it is gone.
  goTo(cell) {
    const index = this.find(cell);
    if (index === undefined || index < 0) return index === undefined;
    this.showCell(this.current, index).catch(() => {});
    return true;
  }

  async showCell(panel, index) {
    const { content } = panel;
    this.app.shell.activateById(panel.id);
    content.deselectAll();
    content.activeCellIndex = index;
    await content.scrollToItem(index, 'center').catch(() => {}); // another cell was chosen meanwhile
  }
}
