// A card for each device: how busy it is and what memory it holds. Cards are made once and then changed in place.
import { sum } from './chart.js';
import { element, setText } from './surface.js';
import { MEMORY_KINDS } from './trace.js';
import { bytes, count, mostPercent, plural } from './words.js';

const NEAR_LIMIT = 0.9;

function meter(label) {
  const fill = element('div', 'drupe-meter-fill');
  const node = element('div', 'drupe-meter', undefined, fill);
  node.setAttribute('role', 'meter');
  node.setAttribute('aria-label', label);
  node.setAttribute('aria-valuemin', '0');
  node.setAttribute('aria-valuemax', '100');
  return { node, fill };
}

function setMeter({ node, fill }, share, text) {
  const percentage = Math.round(Math.min(1, Math.max(0, share)) * 100);
  fill.style.width = `${percentage}%`;
  node.setAttribute('aria-valuenow', String(percentage));
  node.setAttribute('aria-valuetext', text);
}

function row(label, ...nodes) {
  return element('div', 'drupe-row', undefined, element('span', 'drupe-label', label), ...nodes);
}

class Card {
  constructor(device) {
    this.name = element('div', 'drupe-card-name');
    this.filter = element('span', 'drupe-chip', device.filter);
    this.busyText = element('span', 'drupe-figure');
    this.busy = meter(`Use of ${device.filter}`);
    this.maybe = element('div', 'drupe-meter-maybe');
    this.maybe.title = 'work that may have run in this time: its times are not known';
    this.busy.node.append(this.maybe);
    this.memoryText = element('span', 'drupe-figure');
    this.memory = meter(`Memory of ${device.filter}`);
    this.peak = element('div', 'drupe-meter-peak');
    this.memory.node.append(this.peak);
    this.bounds = element('div', 'drupe-kinds');
    this.kinds = element('div', 'drupe-kinds');
    this.state = element('span', 'drupe-state');
    this.node = element('section', 'drupe-card', undefined,
      element('div', 'drupe-card-head', undefined, this.filter, this.state), this.name,
      row('busy', this.busy.node, this.busyText), row('memory', this.memory.node, this.memoryText),
      this.bounds, this.kinds);
    this.node.dataset.device = device.filter;
  }

  update(device) {
    const used = sum(device.used);
    const limit = device.limit || device.total || 1;
    setText(this.name, device.name === device.filter ? '' : device.name); // it may become known later
    this.name.hidden = !this.name.textContent;
    this.node.setAttribute('aria-label', `Device ${device.filter}, ${device.name}`);
    setText(this.busyText, mostPercent(device));
    const most = Math.min(1, device.busy + (device.maybe ?? 0));
    setMeter(this.busy, device.busy, `${most > device.busy ? 'at most ' : ''}${Math.round(most * 100)} percent`);
    this.maybe.style.left = `${device.busy * 100}%`;
    this.maybe.style.width = `${(most - device.busy) * 100}%`;
    setText(this.memoryText, bytes(used));
    setMeter(this.memory, used / limit, `${bytes(used)} of ${bytes(limit)}`);
    this.peak.style.left = `${Math.min(100, device.peak / limit * 100)}%`;
    this.peak.title = `at most ${bytes(device.peak)}`;
    this.memory.node.classList.toggle('drupe-near', used / limit >= NEAR_LIMIT);
    const kinds = MEMORY_KINDS.map((kind, i) => device.used[i] > 0 ? `${kind} ${bytes(device.used[i])}` : '');
    setText(this.kinds, kinds.filter(Boolean).join(' · '));
    setText(this.bounds, `peak ${bytes(device.peak)} · limit ${bytes(limit)}`);
    setText(this.state, device.lost ? 'lost' : device.waiting > 0 ? `${count(device.waiting)} not over` : '');
    this.state.classList.toggle('drupe-lost', Boolean(device.lost));
    this.node.title = `${plural(device.allocations, 'allocation')}, ${bytes(used)} held, `
      + `${bytes(device.in_flight ?? 0)} given back and in flight, ${bytes(device.reserved)} taken from the driver`;
  }
}

export class Cards {
  constructor() {
    this.node = element('div', 'drupe-cards');
    this.cards = new Map();
  }

  update(devices) {
    const wanted = new Set(devices.map(device => device.filter));
    for (const [filter, card] of this.cards) {
      if (wanted.has(filter)) continue;
      card.node.remove();
      this.cards.delete(filter);
    }
    for (const device of devices) {
      let card = this.cards.get(device.filter);
      if (!card) {
        card = new Card(device);
        this.cards.set(device.filter, card);
        this.node.append(card.node);
      }
      card.update(device);
    }
  }
}
