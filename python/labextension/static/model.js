// What the panel and the status item show: the trace of the current notebook's kernel, kept up to date.
import { MOST } from './errors.js';
import { Link, Quiet, isDrupe, isLeased } from './link.js';
import { Poller } from './poller.js';
import { Trace } from './trace.js';

const PRESENCE = ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchstart'];

export class Model {
  // `looked()`: 0 nobody looks, 1 at the status item, 2 at the panel.
  constructor(looked, options = {}) {
    this.looked = looked;
    this.trace = new Trace();
    this.listeners = new Set();
    this.link = null;
    this.kernel = null;
    this.epoch = 0;
    this._reset('none');
    this.poller = new Poller({ ask: () => this._ask(), wanted: () => this._wanted(), ...options });
    this.present = () => this.poller.touch();
    this.seen = () => { this.poller.touch(); this.poller.wake(); };
    for (const name of PRESENCE) document.addEventListener(name, this.present, { capture: true, passive: true });
    this.glance = () => this.poller.wake();
    document.addEventListener('visibilitychange', this.glance);
    window.addEventListener('focus', this.seen);
    this._status = this._status.bind(this);
    this._message = this._message.bind(this);
  }

  // What fails in one part must not keep the others, nor the next question to the kernel, from coming.
  changed() {
    for (const listener of this.listeners) {
      try {
        listener();
      } catch (error) {
        console.error('Drupe: a part of the panel failed.', error);
      }
    }
  }

  // Look at another kernel (a connection of @jupyterlab/services, or null).
  async watch(kernel) {
    if (kernel === this.kernel) return;
    this._leave();
    this.kernel = kernel;
    this._reset(kernel ? 'other' : 'none');
    if (!kernel) return;
    kernel.statusChanged.connect(this._status);
    kernel.connectionStatusChanged.connect(this._status);
    kernel.anyMessage.connect(this._message);
    const ours = await isDrupe(kernel).catch(() => false);
    if (kernel !== this.kernel || !ours) return;
    this.link = new Link(kernel);
    this.leased = await isLeased(kernel).catch(() => false);
    if (kernel !== this.kernel) return;
    this._reset('quiet');
    this.poller.wake();
  }

  _leave() {
    const { kernel } = this;
    this.link = null;
    if (!kernel || kernel.isDisposed) return;
    kernel.statusChanged.disconnect(this._status);
    kernel.connectionStatusChanged.disconnect(this._status);
    kernel.anyMessage.disconnect(this._message);
  }

  // Forget what is known: another kernel, or another life of this one. States: 'none', 'other' kernel, 'quiet' (no
  // device was used yet), 'live', 'dead'.
  _reset(state) {
    this.trace.clear();
    this.errors = []; // the last of them
    this.errorCount = 0;
    this.errorsSeen = 0;
    this.errorsAsked = false;
    this.failuresSeen = 0;
    this.lease = null;
    this.whole = false;
    this.asleep = false;
    this.state = state;
    ++this.epoch;
    this.changed();
  }

  _status() {
    if (!this.link) return; // it may be the last word of a kernel that is gone
    const { status } = this.kernel;
    if (status === 'restarting' || status === 'autorestarting' || status === 'starting') {
      if (this.state !== 'quiet' || this.lease) this._reset('quiet');
    } else if (status === 'dead') {
      this.state = 'dead';
      this.changed();
    } else {
      this.asleep = false; // a cell begins or has ended
      if (this.state === 'dead') this._reset('quiet');
      this.poller.wake();
    }
  }

  _message(_, { msg, direction }) {
    if (direction === 'send' && msg.header.msg_type === 'execute_request') this.poller.touch();
  }

  _wanted() {
    if (!this.link?.ready || document.visibilityState !== 'visible') return false;
    const looked = this.looked();
    return this.asleep ? looked > 1 && this.leased : looked > 0;
  }

  // Ask once; true while something goes on.
  async _ask() {
    const { link, epoch } = this;
    const panel = this.looked() > 1;
    const whole = panel && !this.whole; // the status item gets no spans, so the panel begins with all of them
    let view;
    if (panel && this.leased) await this._askLease(link, epoch);
    try {
      view = await (panel ? link.view(whole ? 0 : this.trace.serial) : link.figures(this.trace.serial, this.trace.now));
    } catch (error) {
      if (!(error instanceof Quiet) || epoch !== this.epoch) return false;
      this.asleep = link.kernel.status === 'idle'; // until a cell runs only the lease has news
      return link.kernel.status === 'busy';
    }
    if (epoch !== this.epoch) return false;
    if (!whole && this.trace.isNew(view)) {
      this._reset('live');
      return true; // ask again for all of it
    }
    this.trace.merge(panel ? view : { ...view, spans: [], lanes: [] });
    this.whole = panel;
    this.state = 'live';
    if (panel) await this._askErrors(link, epoch);
    if (epoch !== this.epoch) return false;
    this.changed();
    return link.kernel.status === 'busy' || this.trace.waiting > 0;
  }

  async _askLease(link, epoch) {
    try {
      const lease = await link.lease();
      if (epoch !== this.epoch) return;
      this.lease = lease;
      this.changed();
    } catch (error) {
      if (!(error instanceof Quiet)) throw error;
    }
  }

  async _askErrors(link, epoch) {
    const failures = this.trace.failures;
    if (this.errorsAsked && failures === this.failuresSeen) return;
    try {
      const { errors, latest } = await link.errors(this.errorsSeen);
      if (epoch !== this.epoch) return;
      this.errorCount += errors.length;
      this.errors = this.errors.concat(errors).slice(-MOST);
      this.errorsSeen = latest;
      this.failuresSeen = failures;
      this.errorsAsked = true;
    } catch (error) {
      if (!(error instanceof Quiet)) throw error;
    }
  }

  dispose() {
    this._leave();
    this.poller.stop();
    for (const name of PRESENCE) document.removeEventListener(name, this.present, { capture: true });
    document.removeEventListener('visibilitychange', this.glance);
    window.removeEventListener('focus', this.seen);
  }
}
