// The box beside the pointer: a title and lines of text.
import { element } from './surface.js';

export class Tip {
  constructor() {
    this.node = element('div', 'drupe-tip');
    this.node.setAttribute('role', 'tooltip');
    this.node.hidden = true;
  }

  // Show it beside a point of the window.
  show(x, y, colour, title, lines) {
    if (!this.node.isConnected) document.body.append(this.node);
    const heading = element('div', 'drupe-tip-title', title);
    const mark = element('span', 'drupe-mark');
    mark.style.backgroundColor = colour;
    heading.prepend(mark);
    this.node.replaceChildren(heading, ...lines.map(line => element('div', '', line)));
    this.node.hidden = false;
    const { width, height } = this.node.getBoundingClientRect();
    const left = x + 14 + width > window.innerWidth ? x - 14 - width : x + 14;
    const top = y + 16 + height > window.innerHeight ? y - 12 - height : y + 16;
    this.node.style.left = `${Math.max(4, left)}px`;
    this.node.style.top = `${Math.max(4, top)}px`;
  }

  hide() {
    this.node.hidden = true;
  }

  dispose() {
    this.node.remove();
  }
}
