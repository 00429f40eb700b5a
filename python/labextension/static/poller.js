// When to ask: every `period` while somebody may look, and never otherwise. Hidden pages and panels, and users who have
// neither run anything nor touched keyboard or pointer for `away`, cause no traffic: servers would not be culled.

export const PERIOD = 1000; // ms, while something goes on
export const CALM = 2000;   // ms, else
export const AWAY = 5 * 60 * 1000;

export class Poller {
  // `ask()` asks once; resolves to true while something goes on. `wanted()`: whether somebody may look.
  // The clock and the timers are parameters for tests.
  constructor({ ask, wanted, away = AWAY, now = () => Date.now(), later = (f, ms) => setTimeout(f, ms),
    drop = timer => clearTimeout(timer) }) {
    Object.assign(this, { ask, wanted, away, now, later, drop });
    this.touched = now();
    this.timer = null;
    this.asking = false;
    this.again = false;
    this.stopped = false;
  }

  get present() {
    return this.now() - this.touched < this.away;
  }

  // The user has done something.
  touch() {
    const was = this.present;
    this.touched = this.now();
    if (!was) this.wake();
  }

  // What `wanted` depends on has changed, or there may be news: ask now.
  wake() {
    if (this.stopped) return;
    if (this.asking) {
      this.again = true;
      return;
    }
    this.drop(this.timer);
    this.timer = null;
    this._round();
  }

  async _round() {
    if (this.stopped || !this.present || !this.wanted()) return;
    this.asking = true;
    this.again = false;
    let active = false;
    try {
      active = await this.ask();
    } catch (error) {
      console.debug('drupe:', error);
    }
    this.asking = false;
    if (this.stopped) return;
    this.timer = this.later(() => { this.timer = null; this._round(); }, this.again ? 50 : active ? PERIOD : CALM);
  }

  stop() {
    this.stopped = true;
    this.drop(this.timer);
  }
}
