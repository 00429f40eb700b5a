// Memory in use over time, one strip for each device, on the time axis of the timeline above.
import { Surface, element } from './surface.js';
import { Tip } from './tip.js';
import { GUTTER } from './paint.js';
import { MEMORY_KINDS } from './trace.js';
import { bytes, cellName } from './words.js';

const STRIP = 52;
const HEADER = 16;
const AXIS_SHARE = 1024; // of the limit; drupe_memory_axis() has the same
const SHADES = [1, 0.62, 0.34]; // of the cell's hue, for the kinds of memory that are there

export class MemoryChart {
  constructor(trace, window) {
    Object.assign(this, { trace, window });
    this.node = element('div', 'drupe-memory');
    this.surface = new Surface((context, width, theme) => this._draw(context, width, theme));
    this.tip = new Tip();
    this.surface.node.setAttribute('role', 'img');
    this.node.append(this.surface.node);
    this.surface.node.addEventListener('pointermove', event => this._hover(event));
    this.surface.node.addEventListener('pointerleave', () => {
      this.tip.hide();
      this.setCursor(null);
      this.onCursor?.(null);
    });
    this.window.listeners.add(this.redraw = () => this.surface.update());
    this.update();
  }

  dispose() {
    this.window.listeners.delete(this.redraw);
    this.surface.dispose();
    this.tip.dispose();
  }

  update() {
    this.devices = this.trace.devices.filter(device => device.samples.length > 0);
    this.node.hidden = this.devices.length === 0;
    this.surface.setHeight(this.devices.length * (STRIP + HEADER) + 4);
    const words = this.devices.map(device =>
      `${device.filter}: ${bytes(sum(device.used))} in use, at most ${bytes(device.peak)}`);
    this.surface.node.setAttribute('aria-label', words.join('; '));
    this.surface.update();
  }

  setCursor(ns) {
    this.cursor = ns;
    this.surface.update();
  }

  get plot() {
    return Math.max(1, (this.width ?? 300) - GUTTER - 4);
  }

  _x(ns) {
    return GUTTER + (ns - this.window.from) / this.window.length * this.plot;
  }

  _draw(context, width, theme) {
    this.width = width;
    context.font = `11px ${theme.font}`;
    context.textBaseline = 'middle';
    this.devices.forEach((device, i) => this._drawDevice(context, width, theme, device, i * (STRIP + HEADER)));
    if (this.cursor) {
      context.fillStyle = theme.faint;
      context.fillRect(Math.round(this._x(this.cursor)), 0, 1, this.surface.height);
    }
  }

  _drawDevice(context, width, theme, device, y) {
    const most = axisOf(device);
    const top = y + HEADER;
    const height = used => used / most * (STRIP - 6);
    context.fillStyle = theme.text;
    context.textAlign = 'left';
    context.fillText(device.filter, 2, y + 8);
    context.fillStyle = theme.faint;
    context.textAlign = 'right';
    context.fillText(device.limit > 0 ? `limit ${bytes(device.limit)}` : '', width - 4, y + 8);
    context.fillText(bytes(most), GUTTER - 4, top + 8);
    context.fillText('0', GUTTER - 4, top + STRIP - 6);
    context.textAlign = 'left';
    context.fillStyle = theme.band;
    context.globalAlpha = 0.5;
    context.fillRect(GUTTER, top, width - GUTTER, STRIP - 2);
    context.globalAlpha = 1;
    context.save();
    context.beginPath();
    context.rect(GUTTER, top, this.plot, STRIP);
    context.clip();
    this._drawSteps(context, device, top + STRIP - 2, height);
    const peak = Math.round(top + STRIP - 2 - height(device.peak)) + 0.5;
    context.strokeStyle = theme.faint;
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(GUTTER, peak);
    context.lineTo(width, peak);
    context.stroke();
    context.setLineDash([]);
    context.restore();
  }

  // Memory stays as it is from one sample to the next.
  _drawSteps(context, device, base, height) {
    const { samples } = device;
    const kinds = [0, 1, 2].filter(kind => samples.some(sample => sample[1 + kind] > 0));
    for (let i = 0; i < samples.length; ++i) {
      const left = this._x(samples[i][0]);
      const next = i + 1 < samples.length ? samples[i + 1][0] : this.trace.now;
      const right = Math.max(left, this._x(next));
      if (right < GUTTER) continue;
      if (left > GUTTER + this.plot) break;
      context.fillStyle = this.trace.colour(samples[i][5]);
      let bottom = base;
      for (const [place, kind] of kinds.entries()) {
        const high = height(samples[i][1 + kind]);
        context.globalAlpha = SHADES[place];
        context.fillRect(left, bottom - high, Math.max(0.7, right - left + 0.3), high);
        bottom -= high;
      }
      context.globalAlpha = 1;
    }
  }

  _hover(event) {
    const box = this.surface.node.getBoundingClientRect();
    const x = event.clientX - box.left;
    const device = this.devices[Math.floor((event.clientY - box.top) / (STRIP + HEADER))];
    const ns = this.window.from + (x - GUTTER) / this.plot * this.window.length;
    this.setCursor(x >= GUTTER ? ns : null);
    this.onCursor?.(this.cursor);
    const sample = device?.samples.findLast(sample => sample[0] <= ns);
    if (!sample || x < GUTTER) return this.tip.hide();
    const used = sample.slice(1, 4);
    const lines = MEMORY_KINDS.map((kind, i) => used[i] > 0 ? `${kind}: ${bytes(used[i])}` : '').filter(Boolean);
    lines.push(`held from the driver: ${bytes(sample[4])}`, cellName(sample[5]));
    const colour = this.trace.colour(sample[5]);
    return this.tip.show(event.clientX, event.clientY, colour, `${bytes(sum(used))} in use`, lines);
  }
}

// Where the axis ends: a power of two, above which there is room, and no less than a thousandth of the limit, so that
// little looks like little.
export function axisOf(device) {
  const most = Math.max(1, device.peak, ...device.samples.map(sample => sum(sample.slice(1, 4))));
  return 2 ** Math.ceil(Math.log2(Math.max(most * 1.25, (device.limit || device.total || 0) / AXIS_SHARE)));
}

export const sum = numbers => numbers.reduce((a, b) => a + b, 0);
