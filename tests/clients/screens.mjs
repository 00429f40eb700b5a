// Pictures of what a long session, a mistake and many objects look like; each is also looked into.
import { Browser } from './browser.mjs';
import { check, equal, main, scenario, until } from './harness.mjs';

const panel = house => house.page.locator('.drupe-panel');

// Fifty cells that work, on three queues; one of them fails.
const LONG = ['import drupe, drupe.array as da\nqueues = [drupe.Queue("host") for _ in range(3)]',
  ...Array.from({ length: 49 }, (_, i) => i === 30
    ? 'def broken(): raise ValueError("the bearing broke")\ntry: queues[0].host_task(broken).wait()\nexcept drupe.DeviceError: pass'
    : `x${i} = da.linspace(0, 1, ${20000 + 400 * i}, device=queues[${i % 3}])\nfloat((da.sin(x${i}) + 1).sum())`)];

scenario("the panel after fifty cells", async house => {
  await house.notebook(LONG);
  await house.runAll();
  await house.ended(49);
  await house.command('application:toggle-left-area');
  await house.command('drupe:show-panel');
  await panel(house).locator('.drupe-cell', { hasText: '[50]' }).waitFor();
  await panel(house).locator('.drupe-error').first().waitFor();
  // What matters is in sight: errors, devices, the timeline and the memory.
  const top = async name => (await panel(house).locator(name).first().boundingBox()).y;
  const chart = await panel(house).locator('.drupe-memory canvas').boundingBox();
  check(chart.y + chart.height < 900, `memory ends at ${chart.y + chart.height}`);
  check(await top('.drupe-error') < await top('.drupe-card'), 'errors stand above the devices');
  const chips = await panel(house).locator('.drupe-cell').allInnerTexts();
  equal(chips, Array.from({ length: 8 }, (_, i) => `[${43 + i}]`), 'the last cells');
  await panel(house).getByText('after 41 earlier cells').waitFor();
  check((await house.page.locator('.drupe-status').innerText()).includes('Devices'), 'the status item has a name');
  await house.pictures('fifty');
});

scenario("a chip tells that its cell is gone", async house => {
  await house.notebook(['import drupe.array as da\nx = da.ones(100)', 'y = x + 1', 'z = x + 2']);
  await house.runAll();
  await house.ended(2);
  await house.command('drupe:show-panel');
  const chip = number => panel(house).locator('.drupe-cell', { hasText: `[${number}]` });
  const active = () => house.page.evaluate(() => window.jupyterapp.shell.currentWidget.content.activeCellIndex);
  await chip(3).click();
  await until(async () => await active() === 2, 'the cell of the chip');
  equal(await panel(house).locator('.drupe-said:visible').count(), 0, 'nothing is told');
  await house.page.evaluate(() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1; });
  await house.command('notebook:delete-cell');
  await until(() => house.page.evaluate(() => window.jupyterapp.shell.currentWidget.content.widgets.length === 2), 'the end of it');
  await chip(2).click();
  await panel(house).locator('.drupe-said', { hasText: 'Cell [2] is not in the notebook any more' }).waitFor();
  equal(await panel(house).locator('.drupe-gone').allInnerTexts(), ['[2]'], 'chips that look so');
  await house.picture('gone');
});

const CARDS = [
  'import drupe, drupe.array as da\ndrupe.devices()',
  'X = da.arange(12, device="host").reshape(3, 4)\nX.sum()',
  'X',
  'X.T',
  'da.arange(7, dtype="float32", device="host")',
  'y = da.linspace(0, 1, 1_000_000, device="host")\ny.queue.wait()\ny',
  'z = da.ones((2000, 1000), device="host")\nz.queue.wait()\nz',
  'm = drupe.memory.MemoryUSMShared(1_000_000, device="host")\nm',
  'drupe.memory.report()',
  'drupe.Device("host").platform',
  'drupe.Device("host").context',
  'drupe.Queue("host", profiling=True).barrier().times',
  '%events --cell -11:',
  '%events --cell -11: --table'
];

scenario("cards of numbers, arrays, devices and memory, and both forms of events", async house => {
  await house.notebook(CARDS);
  await house.page.setViewportSize({ width: 900, height: 2300 });
  await house.command('application:toggle-left-area');
  await house.runAll();
  await house.ended(CARDS.length - 1);
  const card = i => house.cell(i).locator('.jp-RenderedHTML');
  for (let i = 0; i < CARDS.length - 2; i++) await card(i).waitFor();
  for (const i of [12, 13]) await house.cell(i).locator('.drupe-output .drupe-table tbody tr').first().waitFor();
  const height = async i => (await card(i).boundingBox()).height;
  check(await height(1) < 50, `a number takes ${await height(1)} pixels`);
  check((await card(3).innerText()).includes('11]]'), 'the values of X.T');
  check((await card(5).innerText()).includes('1,000,000'), 'separators');
  equal(await card(5).locator('pre').first().evaluate(node => getComputedStyle(node).wordBreak), 'normal', 'breaks in numbers');
  const striped = await card(8).locator('tr').evaluateAll(rows => new Set(rows.map(row => getComputedStyle(row).backgroundColor)).size);
  equal(striped, 1, 'grounds of rows');
  await house.pictures('cards');
});

const KERNEL = [
  'import math\nimport drupe, drupe.array as da\n\n@drupe.kernel\ndef distances(item, x, out):\n    i, j = item.get_id(0), item.get_id(1)\n    total = 0.0\n    for k in range(x.shape[1]):\n        d = x[i, k] - x[j, k]\n        total += d * d\n    out.append(math.sqrt(total))\n\nx, out = da.ones((50, 3), dtype="float32"), da.zeros((50, 50), dtype="float32")\ndrupe.call_kernel(distances, drupe.Range(50, 50), x, out)',
  '@drupe.kernel\ndef distances(item, x, out):\n    i, j = item.get_id(0), item.get_id(1)\n    total = 0.0\n    for k in range(x.shape[1]):\n        d = x[i, k] - x[j, k]\n        total += d * d\n    out[i, j] = math.sqrt(total)\n\ndrupe.call_kernel(distances, drupe.Range(50, 50), x, out)\ndistances.inspect()'
];

scenario("a kernel in Python: an error with its caret, and what became of it", async house => {
  await house.notebook(KERNEL);
  await house.page.setViewportSize({ width: 1100, height: 1000 });
  await house.command('application:toggle-left-area');
  await house.run(0);
  const error = house.cell(0).locator('.jp-RenderedText[data-mime-type="application/vnd.jupyter.stderr"], .jp-OutputArea-output').last();
  await error.waitFor();
  const text = await error.innerText();
  check(text.includes('DK011') && text.includes('^^^^^^^^^^') && text.includes('write into'), text);
  check(!text.includes('drupe/compiler'), 'no frame of ours');
  await house.picture('kernel-error');
  await house.run(1);
  const shown = house.cell(1).locator('.jp-RenderedHTML');
  await shown.waitFor();
  check((await shown.innerText()).includes('array(float32, 2d)'), 'the types');
  await shown.scrollIntoViewIfNeeded();
  await house.pictures('kernel-inspect');
});

const FAULTY = 'import drupe, drupe.array as da\n\n@drupe.kernel(checked=True)\ndef smooth(item, x, out):\n    i = item.get_global_id(0)\n    total = 0.0\n    for k in range(3):\n        total += x[i + k]\n    out[i] = total / 3\n\nx, out = da.arange(64.0), da.zeros(64)\ndrupe.call_kernel(smooth, drupe.NdRange(64, 8), x, out)';

scenario("a kernel that failed on the device, stopped in the debugger in its work-item", async house => {
  await house.notebook([FAULTY, '%debug']);
  await house.page.setViewportSize({ width: 1300, height: 900 });
  await house.command('application:toggle-left-area');
  const bug = house.page.locator('.jp-DebuggerBugButton');
  await bug.locator('xpath=self::*[not(@disabled) and not(@aria-disabled="true")]').waitFor();
  await bug.click();
  await house.page.locator('#jp-debugger-sidebar, .jp-DebuggerSidebar').first().waitFor();
  await house.run(0);
  await house.cell(0).locator('.jp-OutputArea-output').first().waitFor();
  await house.run(1);
  await house.page.locator('.jp-DebuggerCallstack-body li', { hasText: 'smooth' }).first().waitFor();
  await house.page.locator('.jp-DebuggerVariables').getByText('NdItem').first().waitFor();
  await house.picture('kernel-debugger');
  await house.command('debugger:continue');
});

await main(name => Browser.open(name));
