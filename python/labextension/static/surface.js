// A canvas that is as large as its place, sharp on every screen, and drawn again when its size or the theme changes.

import { labelParts } from './words.js';

// What is painted with, each from a variable of the theme, or what stands beside it.
const COLOURS = {
  text: ['--jp-ui-font-color1', '#222222'], faint: ['--jp-ui-font-color2', '#666666'],
  line: ['--jp-border-color2', '#cccccc'], ground: ['--jp-layout-color1', '#ffffff'],
  band: ['--jp-layout-color2', '#eeeeee'], error: ['--jp-error-color1', '#d32f2f'],
  font: ['--jp-ui-font-family', 'sans-serif']
};
const SETTLING = [100, 400, 1500, 5000]; // ms until the style sheets of a new theme have come

export class Surface {
  constructor(draw) {
    this.draw = draw; // draw(context, width, theme)
    this.node = document.createElement('canvas');
    this.node.className = 'drupe-canvas';
    this.height = 0;
    this.width = 0;
    this.frame = 0;
    this.sizes = new ResizeObserver(() => this.update());
    this.sizes.observe(this.node);
    this.timers = [];
    this.themes = new MutationObserver(() => {
      this.timers.forEach(clearTimeout);
      this.timers = SETTLING.map(ms => setTimeout(() => this.update(), ms));
      this.update();
    });
    const attributeFilter = ['data-jp-theme-name', 'data-jp-theme-light'];
    this.themes.observe(document.body, { attributes: true, attributeFilter });
  }

  dispose() {
    cancelAnimationFrame(this.frame);
    this.sizes.disconnect();
    this.themes.disconnect();
    this.timers.forEach(clearTimeout);
  }

  setHeight(height) {
    if (height === this.height) return;
    this.height = height;
    this.node.style.height = `${height}px`;
    this.update();
  }

  update() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this._paint());
  }

  _paint() {
    this.frame = 0;
    const width = this.node.clientWidth;
    if (width === 0 || this.height === 0) return; // hidden: there will be a resize
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(width * ratio), Math.round(this.height * ratio)];
    if (this.node.width !== w || this.node.height !== h) [this.node.width, this.node.height] = [w, h];
    this.width = width;
    const context = this.node.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, this.height);
    const theme = readTheme(this.node);
    this.node.dataset.ground = theme.ground; // tells which theme the picture is of
    this.draw(context, width, theme);
  }
}

function readTheme(node) {
  const style = getComputedStyle(node);
  const theme = {};
  for (const [name, [variable, otherwise]] of Object.entries(COLOURS)) {
    theme[name] = style.getPropertyValue(variable).trim() || otherwise;
  }
  return theme;
}

// Black or white, whichever reads better on a colour #rrggbb.
export function inkOn(colour) {
  const channel = i => {
    const value = parseInt(colour.slice(i, i + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  const luminance = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
  return luminance > 0.22 ? '#000000' : '#ffffff';
}

// A text cut with an ellipsis so that it is at most `width` wide.
export function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? `${text.slice(0, low)}…` : '';
}

// A label cut so that the lines at its end stay, if these fit, behind whole names: "multiply, …: lines 2-3".
export function fitLabel(context, label, width) {
  const [name, lines] = labelParts(label);
  const room = width - context.measureText(lines).width;
  if (!lines || context.measureText(label).width <= width || context.measureText(`${name[0]}…`).width > room) {
    return fitText(context, label, width);
  }
  return fitText(context, name, room).replace(/,[^,]*…$/, ', …') + lines;
}

// An element with a class, a text and children; never from markup.
export function element(tag, name = '', text = undefined, ...children) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  node.append(...children);
  return node;
}

export function button(text, title, action, name = '') {
  const node = element('button', `drupe-button ${name}`.trim(), text);
  node.type = 'button';
  node.title = title;
  node.setAttribute('aria-label', title);
  node.addEventListener('click', action);
  return node;
}

// Set a text only when it changes: a screen reader and the layout stay quiet.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
