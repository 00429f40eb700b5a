// A kernel's lease of a device broker in a few words: what it holds, how long, who waits.
import { plural } from './words.js';

function left(seconds) {
  const minutes = Math.floor(Math.max(0, seconds) / 60);
  if (minutes < 2) return `${Math.max(0, Math.round(seconds))} s left`;
  return minutes < 120 ? `${minutes} min left` : `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
}

function held(lease, now) {
  const parts = [`Leased: ${lease.devices.join(', ') || 'no device'}`];
  if (lease.ends) parts.push(left(lease.ends - now));
  if (lease.waiting > 0) parts.push(`${plural(lease.waiting, 'other')} in the queue`);
  return parts.join(' · ');
}

function parked({ position, waiting }) {
  if (position > 1) return `A cell waits for the device: ${position - 1} before it.`;
  if (position === 1) return 'A cell waits for the device: it is next.';
  const queue = waiting > 0 ? ` ${plural(waiting, 'other')} in the queue.` : '';
  return `The device is with others. It comes back when a cell needs it.${queue}`;
}

// Lines of text. `now`: seconds since 1970.
export function leaseText(lease, now) {
  if (!lease) return '';
  if (lease.state === 'parked') return parked(lease);
  const first = lease.state === 'ended' ? 'The lease has ended. Cells that use a device fail.' : held(lease, now);
  return lease.holds ? `${first}\n${lease.holds}` : first;
}
