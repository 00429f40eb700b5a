// The panel, the status item and timelines in outputs, in JupyterLab and Notebook 7.
import { writeFileSync } from 'node:fs';
import { Browser } from './browser.mjs';
import { check, equal, main, scenario, until } from './harness.mjs';
import { ERROR, answer, madeUp } from './views.mjs';

const CARD = '.drupe-panel .drupe-card';
const CANVAS = '.drupe-panel .drupe-timeline canvas';

const asked = house => house.page.evaluate(() => window.asked.length);

async function openPanel(house) {
  await house.command('drupe:show-panel');
  await house.page.locator('.drupe-panel').waitFor();
}

async function readTheTimeline(house, app) {
  await house.notebook(['1', '2', '3'], { app });
  await house.answering(answer, { view: madeUp(), error: ERROR });
  await house.runAll();
  await house.ended(2);
  await house.page.locator('.drupe-status:visible', { hasText: '50 %' }).waitFor();
  equal(await house.page.locator(CARD).count(), 0, 'cards before the panel is open');
  await house.page.locator('.drupe-status').click();
  await house.page.locator(CARD, { hasText: 'opencl:gpu:0' }).waitFor();
  await house.page.locator('.drupe-summary', { hasText: '20 kernels' }).first().waitFor();
  const canvas = house.page.locator(CANVAS);
  await house.sweep(canvas, 46, ['vadd', 'cell [2], line 3', '4.00 ms', '1.00 MiB', 'complete']);
  // The wheel zooms, a drag moves, both keep what is under the pointer.
  const range = () => house.page.locator('.drupe-panel .drupe-range').textContent();
  const before = await range();
  await house.page.mouse.wheel(0, -600);
  await until(async () => (await range()) !== before, 'the zoom');
  equal(await house.page.locator('.drupe-panel [aria-pressed="true"]').count(), 0, 'it does not follow any more');
  await house.page.locator('.drupe-panel').getByText('All', { exact: true }).click();
  await until(async () => (await range()).startsWith('20'), 'everything: 200 ms');
  // The keyboard does it too, and says what it has found.
  await canvas.focus();
  await canvas.press('n');
  const voice = house.page.locator('.drupe-panel .drupe-voice');
  await until(async () => (await voice.textContent()).includes('vadd, cell [1], line 3'), 'the first span in words');
  await canvas.press('ArrowDown');
  await until(async () => (await voice.textContent()).startsWith('copy'), 'the row below');
  await canvas.press('Escape');
  // An error leads to its cell.
  const active = () => house.page.evaluate(() => window.jupyterapp.shell.currentWidget.content.activeCellIndex);
  equal(await active(), 2, 'the active cell');
  await house.page.locator('.drupe-error', { hasText: 'it read past the end' }).click();
  await until(async () => (await active()) === 0, 'the cell of the error');
  equal(house.errors.filter(text => text.includes('extensions/drupe')), [], 'errors of the panel');
}

scenario("JupyterLab shows a timeline that can be read", house => readTheTimeline(house, 'lab/tree'));
scenario("Notebook 7 shows a timeline that can be read", house => readTheTimeline(house, 'notebooks'));

scenario("nothing is asked when nobody looks", async house => {
  await house.notebook(['1', '2'], {});
  await house.answering(answer, { view: madeUp(), error: ERROR });
  await house.run(0);
  await house.page.locator('.drupe-status:visible', { hasText: '50 %' }).waitFor();
  const hide = hidden => house.page.evaluate(hidden => {
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => (hidden ? 'hidden' : 'visible') });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
  const quiet = async what => {
    let count;
    await until(async () => { // a round that has begun ends
      const before = await asked(house);
      await house.page.waitForTimeout(2000);
      return (count = await asked(house)) === before;
    }, `an end of the questions: ${what}`);
    await house.page.waitForTimeout(5000); // an absence can only be waited for
    equal(await asked(house), count, what);
  };
  await hide(true);
  await quiet('the page is hidden');
  await hide(false);
  let count = await asked(house);
  await until(async () => (await asked(house)) > count + 1, 'it goes on');
  await house.command('statusbar:toggle');
  await until(async () => await house.page.locator('.drupe-status:visible').count() === 0, 'the status bar to go');
  await quiet('no status bar and no panel');
  count = await asked(house);
  await openPanel(house);
  await until(async () => (await asked(house)) > count + 1, 'the panel asks');
});

scenario("of many errors the latest are in sight", async house => {
  await house.notebook(['1'], {});
  const errors = [1, 2, 3, 4, 5].map(id => ({ ...ERROR, id, text: `error ${id}` }));
  await house.answering((request, { view, errors }) => request.command === 'drupe/view' ? view
    : request.command === 'drupe/errors' ? { errors, latest: 5 } : { version: 1 }, { view: madeUp(), errors });
  await house.run(0);
  await openPanel(house);
  const shown = async () => (await house.page.locator('.drupe-error:visible .drupe-error-text').allInnerTexts()).join();
  await until(async () => await shown() === 'error 5,error 4,error 3', 'the latest');
  await house.page.getByText('Show 2 more').click();
  await until(async () => await shown() === 'error 5,error 4,error 3,error 2,error 1', 'all');
  await house.page.getByText('Show the latest').click();
  await until(async () => await shown() === 'error 5,error 4,error 3', 'the latest again');
});

scenario("what cannot be drawn is shown as HTML", async house => {
  const bundle = (trace, extra = '') => `display({'text/plain': 'plain', 'text/html': '<b class="fallback">as HTML</b>', ` +
    `'application/vnd.drupe.trace+json': ${trace}}, raw=True${extra})`;
  await house.notebook([bundle('{"version": 99}'), bundle('{"version": 1, "spans": 7}'), bundle('{"version": 1}'),
    bundle(`__import__('json').load(open('view.json'))`)], {});
  writeFileSync(`${process.env.DRUPE_NOTEBOOKS}/view.json`, JSON.stringify(madeUp()));
  await house.runAll();
  await house.ended(3);
  for (const i of [0, 1]) await house.cell(i).locator('.jp-OutputArea-output .fallback').waitFor();
  await house.cell(2).locator('.drupe-summary', { hasText: 'No work on a device' }).waitFor();
  equal(await house.cell(2).locator('.drupe-output canvas:visible').count(), 0, 'timelines of nothing');
  await house.cell(3).locator('.drupe-summary', { hasText: '20 kernels' }).waitFor();
  await house.sweep(house.cell(3).locator('.drupe-timeline canvas'), 46, ['vadd']);
});

scenario("outputs have a table and a legend, in a narrow page too", async house => {
  const shown = (kind, more = '') => `display({'text/plain': 'plain', 'application/vnd.drupe.trace+json': ` +
    `__import__('json').load(open('view.json'))}, raw=True, metadata={'application/vnd.drupe.trace+json': {'kind': '${kind}'${more}}})`;
  await house.notebook([shown('events'), shown('dashboard'), shown('dashboard', ", 'live': True"), shown('table')]);
  writeFileSync(`${process.env.DRUPE_NOTEBOOKS}/view.json`, JSON.stringify(madeUp()));
  await house.runAll();
  await house.ended(3);
  const heads = await Promise.all([1, 2].map(i => house.cell(i).locator('.drupe-summary').innerText()));
  check(!heads[0].includes('as of') && /as of .*2023/.test(heads[1]), `what does not move tells its time: ${heads}`);
  const rows = house.cell(0).locator('.drupe-table tbody tr');
  await rows.first().waitFor();
  const cells = row => rows.nth(row).locator('td').allTextContents();
  equal([await cells(0), await cells(1)], [['vadd1 failed', '', '[1-2]', '20', '80.0 ms', '50 %', '-', '-'],
    ['copy', '', '[1-2]', '20', '80.0 ms', '50 %', '20.0 MiB', '262 MB/s']], 'rows');
  const alone = house.cell(3).locator('.drupe-table tbody tr');
  equal([await alone.first().locator('td').allTextContents(), await house.cell(3).locator('canvas:visible').count()],
    [await cells(0), 0], 'a table alone looks like the one under a timeline');
  equal(await house.cell(1).locator('.drupe-cell').allInnerTexts(), ['[1]', '[2]'], 'legend');
  await house.cell(1).locator('.drupe-cell', { hasText: '[1]' }).click();
  await until(async () => (await house.cell(1).locator('.drupe-range').innerText()).startsWith('103'), 'the first cell alone');
  await house.command('application:toggle-left-area');
  await house.command('drupe:show-panel');
  await house.page.setViewportSize({ width: 620, height: 900 });
  for (const part of await house.page.locator('.drupe-button:visible').all()) {
    const { height } = await part.boundingBox();
    check(height < 24, `a button of ${height} pixels: ${await part.innerText()}`);
  }
  await house.picture('narrow');
});

await main(name => Browser.open(name));
