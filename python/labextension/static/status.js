// The item of the status bar: how busy the busiest device is, and the memory in use on all.
import { sum } from './chart.js';
import { element, setText } from './surface.js';
import { bytes, mostPercent } from './words.js';

const most = device => device.busy + (device.maybe ?? 0);

export class StatusItem {
  constructor(model, onOpen) {
    this.model = model;
    this.fill = element('span', 'drupe-status-fill');
    this.busy = element('span', 'drupe-status-busy');
    this.memory = element('span', 'drupe-status-memory');
    const bar = element('span', 'drupe-status-bar', undefined, this.fill);
    const name = element('span', '', 'Devices');
    this.node = element('button', 'drupe-status', undefined, name, bar, this.busy, this.memory);
    this.node.type = 'button';
    this.node.addEventListener('click', onOpen);
    this.onShown = null; // told when it appears or goes
    model.listeners.add(() => this.update());
    this.update();
  }

  get shown() {
    return this.model.state === 'live' || this.model.state === 'quiet';
  }

  update() {
    const { devices } = this.model.trace;
    const busiest = devices.reduce((a, b) => (!a || most(b) > most(a) ? b : a), null);
    const used = sum(devices.map(device => sum(device.used)));
    const near = devices.some(device => device.limit > 0 && sum(device.used) >= 0.9 * device.limit);
    this.fill.style.height = `${Math.round((busiest?.busy ?? 0) * 100)}%`; // what is known
    this.node.classList.toggle('drupe-near', near || devices.some(device => device.lost));
    setText(this.busy, busiest ? mostPercent(busiest) : '');
    setText(this.memory, busiest ? bytes(used) : 'none used');
    const lines = devices.map(device => [`${device.filter}: ${mostPercent(device).trimStart()} busy`,
      `${bytes(sum(device.used))} in use`, device.waiting ? `${device.waiting} not over` : '',
      device.lost ? 'lost' : '']
      .filter(Boolean).join(', '));
    const title = ['Devices of this kernel (click for the panel)', ...lines].join('\n');
    if (this.node.title !== title) {
      this.node.title = title;
      this.node.setAttribute('aria-label', title);
    }
    if (this.shown !== this.was) {
      this.was = this.shown;
      this.onShown?.();
    }
  }
}
