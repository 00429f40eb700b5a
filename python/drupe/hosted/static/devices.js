// The page "Devices": draws what the hub's events say. Text goes into the page as text, never as markup.
'use strict';

(() => {
  const root = document.getElementById('drupe-devices');
  const byId = id => document.getElementById(id);

  function make(name, className, ...content) {
    const element = document.createElement(name);
    if (className) element.className = className;
    element.append(...content);
    return element;
  }

  function bytes(count) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    while (count >= 1024 && unit < units.length - 1) {
      count /= 1024;
      unit++;
    }
    return `${unit && count < 100 ? count.toPrecision(3) : Math.round(count)} ${units[unit]}`;
  }

  // Two figures at most: what matters is the order of magnitude.
  function span(seconds) {
    seconds = Math.max(0, Math.round(seconds));
    const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
    if (days) return `${days} d ${hours} h`;
    if (hours) return `${hours} h ${minutes} min`;
    return minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
  }

  function row(label, meter, figure) {
    return make('div', 'drupe-row', make('span', 'drupe-label', label), meter, make('span', 'drupe-figure', figure));
  }

  // A bar of stretches: [class, share of the whole].
  function meter(...stretches) {
    const bar = make('div', 'drupe-meter');
    for (const [className, share] of stretches) {
      const piece = make('i', className);
      piece.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
      bar.append(piece);
    }
    return bar;
  }

  function parts(device) {
    if (device.parts > 64) return meter(['drupe-mine', device.mine / device.parts], ['drupe-others', device.others / device.parts]);
    const strip = make('div', 'drupe-parts');
    for (const state of device.strip) strip.append(make('i', { m: 'drupe-mine', o: 'drupe-others' }[state] ?? ''));
    return strip;
  }

  function card(device) {
    const rows = [];
    const used = device.mine + device.others;
    rows.push(row('leased', parts(device), device.parts > 1 ? `${used} of ${device.parts}` : used ? 'all' : 'free'));
    const memory = device.memory;
    if (memory.total && memory.shared) {
      rows.push(row('memory', meter(['drupe-mine', memory.mine / memory.total], ['drupe-others', memory.others / memory.total]),
        bytes(memory.mine + memory.others)));
    }
    if (device.metered) {
      rows.push(row('load', meter(['drupe-load', device.load ?? 0]), device.load === null ? '' : `${Math.round(100 * device.load)} %`));
    }
    const head = make('div', 'drupe-card-head', make('span', 'drupe-chip', device.id), make('span', 'drupe-state', device.state));
    const name = make('div', 'drupe-card-name', device.name + (memory.total ? ` · ${bytes(memory.total)}` : ''));
    return make('div', 'drupe-card', head, name, ...rows);
  }

  function table(columns, rows, empty) {
    if (!rows.length) return make('div', 'drupe-none', empty);
    const head = make('tr', '', ...columns.map(([title, className]) => make('th', className, title)));
    const body = rows.map(({ cells, className }) =>
      make('tr', className, ...cells.map((cell, index) => make('td', columns[index][1], cell))));
    return make('table', '', make('thead', '', head), make('tbody', '', ...body));
  }

  function left(lease, now) {
    if (lease.ends === null) return 'no limit';
    const seconds = lease.ends - now;
    return make('span', seconds < 600 ? 'drupe-soon' : '', span(seconds));
  }

  function draw(page) {
    const summary = byId('drupe-summary');
    summary.textContent = page.error ?? page.summary;
    summary.classList.toggle('drupe-broken', Boolean(page.error));
    if (page.error) return;
    byId('drupe-cards').replaceChildren(...page.devices.map(card));
    byId('drupe-leases').replaceChildren(table(
      [['user', ''], ['devices', 'drupe-wide'], ['for', 'drupe-number'], ['left', 'drupe-number'], ['state', ''], ['what', '']],
      page.leases.map(lease => ({
        className: lease.mine ? 'drupe-own' : '',
        cells: [lease.user, lease.devices, lease.since === null ? '' : span(page.now - lease.since),
          lease.since === null ? '' : left(lease, page.now), lease.state, lease.label]
      })), 'Nobody has a device.'));
    byId('drupe-queue').replaceChildren(table(
      [['place', ''], ['user', ''], ['wants', 'drupe-wide'], ['waits', 'drupe-number']],
      page.queue.map(ticket => ({
        className: ticket.mine ? 'drupe-own' : '',
        cells: [ticket.position, ticket.user, ticket.wants, ticket.since === null ? '' : span(page.now - ticket.since)]
      })), page.waiting ? `Of other users, ${page.waiting} ${page.waiting === 1 ? 'waits' : 'wait'}.` : 'Nobody waits.'));
  }

  let last = null;
  let offset = 0; // between the hub's clock and this one
  const show = () => last && draw({ ...last, now: Date.now() / 1000 - offset });
  const events = new EventSource(root.dataset.events);
  events.onmessage = event => {
    last = JSON.parse(event.data);
    offset = Date.now() / 1000 - last.now;
    show();
    root.dataset.drawn = 'yes';
  };
  events.onerror = () => draw({ error: 'The hub does not answer; this page goes on when it does.' });
  setInterval(show, 1000); // the times go on between events
})();
