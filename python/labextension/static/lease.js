// A kernel's lease of a device broker in a line: what it holds, how long, who waits.
import { plural } from './words.js';

function left(seconds) {
  const minutes = Math.floor(Math.max(0, seconds) / 60);
  if (minutes < 2) return `${Math.max(0, Math.round(seconds))} s left`;
  return minutes < 120 ? `${minutes} min left` : `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
}

const STATES = {
  parked: 'The device is with others. It comes back when a cell needs it.',
  ended: 'The lease has ended: cells that use a device fail.'
};

// `now`: seconds since 1970.
export function leaseText(lease, now) {
  if (!lease) return '';
  const parts = [STATES[lease.state] ?? `Leased: ${lease.devices.join(', ') || 'no device'}`];
  if (lease.state === 'held' && lease.ends) parts.push(left(lease.ends - now));
  if (lease.state !== 'ended' && lease.waiting > 0) parts.push(`${plural(lease.waiting, 'other')} in the queue`);
  if (lease.holds && lease.state !== 'parked') parts.push(`cannot be parked: ${lease.holds}`);
  return parts.join(' · ');
}
