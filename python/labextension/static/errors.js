// The list of what failed on devices, the latest first; each leads to its cell.
import { button, element, setText } from './surface.js';
import { cellName, clock, plural } from './words.js';

export const MOST = 100; // that are listed
const SHOWN = 3; // until all are asked for

// As the exceptions are called in Python; a status that is not here is called what it is.
const NAMES = { NO_MEMORY: 'DeviceMemoryError', BUILD_FAILED: 'BuildError', DEVICE_LOST: 'DeviceLostError',
  DEPENDENCY: 'DependencyError', CANCELLED: 'CancelledError', INTERNAL: 'InternalError', CHECK: 'CheckError',
  TASK: 'HostTaskError', INVALID: 'InvalidArgumentError', UNSUPPORTED: 'UnsupportedError', LINALG: 'LinAlgError' };

export class ErrorList {
  constructor(onCell) {
    this.onCell = onCell;
    this.latest = 0; // ids grow
    this.title = element('h3', 'drupe-heading');
    this.list = element('ol', 'drupe-errors');
    this.more = button('', 'Show the errors before these, too', () => this._open(!this.open), 'drupe-more');
    this.node = element('section', 'drupe-part', undefined, this.title, this.list, this.more);
    this.node.setAttribute('aria-label', 'Errors');
    this.clear();
  }

  _open(open) {
    this.open = open;
    const { children } = this.list;
    [...children].forEach((item, i) => { item.hidden = !open && i >= SHOWN; });
    const left = children.length - SHOWN;
    this.more.hidden = left <= 0;
    setText(this.more, open ? 'Show the latest' : `Show ${left} more`);
    this.node.hidden = children.length === 0;
  }

  clear() {
    this.latest = 0;
    this.list.replaceChildren();
    this._open(false);
  }

  // `count`: how many there were, which may be more than were given.
  add(errors, count) {
    for (const error of errors) {
      if (error.id <= this.latest) continue;
      this.latest = error.id;
      this.list.prepend(this._item(error));
    }
    while (this.list.children.length > MOST) this.list.lastChild.remove();
    setText(this.title, plural(count, 'error'));
    this._open(this.open);
  }

  _item(error) {
    const where = error.place || cellName(error.cell);
    const call = error.label && `${error.label}(${error.arguments ?? ''})`;
    const more = [call, error.device, error.queue ? `queue\u00a0${error.queue}` : ''].filter(Boolean);
    const node = element('button', 'drupe-error', undefined,
      element('div', 'drupe-error-head', undefined,
        element('span', 'drupe-error-name', NAMES[error.name] ?? error.name),
        element('span', 'drupe-error-time', error.unix ? clock(error.unix) : '')),
      element('div', 'drupe-error-place', where), element('div', 'drupe-error-text', error.text),
      element('div', 'drupe-error-more', more.join(' · ')));
    node.type = 'button';
    node.disabled = !error.cell;
    node.title = error.cell ? `Go to ${cellName(error.cell)}` : '';
    node.addEventListener('click', () => this.onCell(error.cell));
    return element('li', '', undefined, node);
  }
}
