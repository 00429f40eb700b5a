// A notebook that uses devices, as people see it: displays that move, errors under their cells, a crash, a reload.
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { Browser } from './browser.mjs';
import { check, equal, main, rest, scenario, until } from './harness.mjs';

const WORK = `import drupe, drupe.array as da
x = da.linspace(0, 1, 1 << 20, device="host")
for _ in range(50):
    x = da.sin(x) + 1
round(float(x.sum()))`;

// A C call that holds the GIL until somebody opens the other end of a pipe, with much work on its way, and some behind
// it that waits for ever.
const STUCK = path => `import concurrent.futures, ctypes, os
big = da.linspace(0, 1, 1 << 23, device="host")
for _ in range(1000):
    big *= 1.0001
big.queue.barrier(wait_for=[drupe.Event.from_future(concurrent.futures.Future())])
big += 1
end = ctypes.PyDLL(None).open(b"${path}", os.O_RDONLY)
print("released", end > 0)`;

// A kernel that reads where no memory is, as soon as there is a file.
const WILD = path => `import concurrent.futures as futures, drupe, os, struct, time, drupe.array as da
y = da.sin(da.linspace(0, 1, 1 << 22, device="host"))
def wait():
    while not os.path.exists("${path}"): time.sleep(0.01)
gate = drupe.Event.from_future(futures.ThreadPoolExecutor().submit(wait))
kernel = drupe.Program(None, language="builtin", device="host")["sequence_f64"]
event = kernel(None, struct.pack("qqddddii", 64, 1, 0, 0, 1, 0, 11, 0),
               global_size=4, queue=y.queue, wait_for=[gate])`;

const panel = house => house.page.locator('.drupe-panel');
const timeline = locator => locator.locator('.drupe-timeline canvas');

async function watch(house, app, name) {
  const pipe = `${process.env.DRUPE_NOTEBOOKS}/${name}.pipe`;
  execFileSync('mkfifo', [pipe]);
  const file = await house.notebook(['%dashboard', WORK, STUCK(pipe)], { app });
  await house.run(0);
  await house.run(1);
  await house.ended(1);
  const output = house.cell(0).locator('.drupe-output');
  await output.waitFor();
  await house.command('drupe:show-panel');
  if (app === 'lab/tree') await house.command('application:toggle-left-area');
  await panel(house).locator('.drupe-card', { hasText: 'host:cpu:0' }).waitFor();
  await house.run(2);
  await until(async () => (await panel(house).innerText()).includes('not over'), 'the panel to see the work');

  const seen = new Set();
  await until(async () => {
    seen.add(await output.innerText());
    return seen.size > 5;
  }, 'five changes of the dashboard while Python is stuck', 90);
  await house.sweep(timeline(panel(house)), 46, ['cell [3], line 4', 'host:cpu:0, queue']);
  equal(await house.cell(2).locator('.jp-OutputArea-output').count(), 0, 'outputs while Python is stuck');
  await panel(house).locator('.drupe-cell', { hasText: '[3]' }).waitFor();
  equal(await panel(house).locator('.drupe-gone').count(), 0, 'chips of cells that are gone, though one runs only');
  await house.page.evaluate(() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0; });
  await panel(house).locator('.drupe-cell', { hasText: '[3]' }).click();
  equal(await house.page.evaluate(() => window.jupyterapp.shell.currentWidget.content.activeCellIndex), 2, 'the cell that runs');
  await house.pictures(`${name}-panel`);
  closeSync(openSync(pipe, 'w'));
  await house.shows(2, 'released True');
  await house.command('notebook:interrupt-kernel');
  await house.ended(2);
  return file;
}

scenario("JupyterLab: the dashboard and the panel move while Python is stuck", async house => {
  await watch(house, 'lab/tree', 'lab');
});

scenario("Notebook 7: the dashboard and the panel move while Python is stuck", async house => {
  await watch(house, 'notebooks', 'notebook');
});

async function reload(house, app) {
  const file = await house.notebook(['%dashboard', WORK, '%%events\nx = da.sin(x)\nfloat(x.sum())'], { app });
  await house.runAll();
  await house.ended(2);
  const lines = async () => {
    const found = [];
    for (const i of [0, 2]) found.push(await house.cell(i).locator('.drupe-output .drupe-summary').innerText());
    return found;
  };
  let before;
  await until(async () => { // the last frame of the dashboard comes a moment after the cell's end
    before = await lines();
    await house.page.waitForTimeout(4000);
    return before.join() === (await lines()).join();
  }, 'the record');
  check(before.every(line => / busy · [\d,]+ kernels?/.test(line)), before.join('\n'));
  const cells = await house.save(file, 2, 'vnd.drupe');
  await house.go(`${app}/${file}`);
  await house.cell(2).locator('.drupe-output canvas').first().waitFor();
  equal(await lines(), before, 'the record');
  await house.sweep(timeline(house.cell(2)), 46, ['cell [3], line']);
  for (const i of [0, 2]) {
    const { data } = cells[i].outputs.find(output => output.data?.['application/vnd.drupe.trace+json']);
    for (const type of ['text/plain', 'text/html']) check(String(data[type]).includes('kernels'), `${type}: ${data[type]}`);
  }
}

scenario("JupyterLab: after a reload the record is still there", house => reload(house, 'lab/tree'));
scenario("Notebook 7: after a reload the record is still there", house => reload(house, 'notebooks'));

// Works, a little at a time, until somebody makes a file.
const GOES_ON = path => `import os, time, drupe, drupe.array as da
x = da.linspace(0, 1, 1 << 20, device="host")
while not os.path.exists("${path}"):
    x = da.sin(x) + 1
    x.queue.wait()
    time.sleep(0.05)
print("went on until then")`;

async function goesOn(house, app) {
  const path = `${process.env.DRUPE_NOTEBOOKS}/${house.name}.go`;
  const file = await house.notebook(['%dashboard', GOES_ON(path), 'float(x.sum())', 'event = x.queue.barrier(wait_for=[' +
    '(gate := drupe._engine._event_open("gate"))])\nevent', 'gate._finish()\nevent.wait()', '%dashboard off'], { app });
  const line = () => house.cell(0).locator('.drupe-output .drupe-summary').innerText();
  const kernels = async () => Number((await line()).match(/([\d,]+) kernels/)?.[1].replaceAll(',', '') ?? 0);
  await house.run(0);
  await house.ended(0);
  await house.run(1);
  await until(async () => await kernels() > 3, 'the dashboard to move');
  await house.save(file, 0, 'vnd.drupe');
  await house.go(`${app}/${file}`);
  await house.cell(0).locator('.drupe-output canvas').first().waitFor();
  const seen = new Set();
  await until(async () => seen.add(await kernels()).size > 4, 'four changes of the dashboard after the reload');
  check(!(await line()).includes('as of'), await line());
  writeFileSync(path, '');
  await house.status('idle');
  // The cell is over, so is its picture: then a new one moves it on. What it shows is what is saved.
  await until(async () => !(await house.cell(0).locator('.drupe-output').innerText()).includes('running'), 'the record');
  const before = await kernels();
  await house.run(2);
  await house.ended(2);
  await until(async () => await kernels() > before, 'the next cell in the dashboard');
  const count = (await kernels()).toLocaleString('en');
  await house.save(file, 0, `${count} kernels`);
  // What changes once does so, too.
  await house.run(3);
  await house.shows(3, 'queued');
  await house.save(file, 3, 'queued');
  await house.go(`${app}/${file}`);
  await house.shows(3, 'queued');
  await house.status('idle'); // before that nothing can be run
  await house.run(4);
  await house.shows(3, 'complete');
  await house.run(5);
  await house.ended(5);
  equal(await house.cell(0).locator('.jp-OutputArea-output').count(), 1, 'outputs of the dashboard');
}

scenario("JupyterLab: after a reload a dashboard goes on", house => goesOn(house, 'lab/tree'));
scenario("Notebook 7: after a reload a dashboard goes on", house => goesOn(house, 'notebooks'));

async function failures(house, app, name) {
  const file = `${process.env.DRUPE_NOTEBOOKS}/${name}.fails`;
  const notebook = await house.notebook([WILD(file), "print('meanwhile')", 'import ctypes\nctypes.string_at(1)', "print('after')"], { app });
  await house.run(0);
  await house.run(1);
  await house.shows(1, 'meanwhile');
  await house.ended(1);
  writeFileSync(file, '');
  const error = house.cell(0).locator('.jp-OutputArea-output', { hasText: 'DeviceLostError' });
  await error.first().waitFor();
  const text = await error.first().innerText();
  for (const part of ['Submitted by cell [1], line 7', 'SIGSEGV']) check(text.includes(part), `${part} in: ${text}`);
  check(!(await house.cell(1).textContent()).includes('DeviceLostError'), 'it is not under the cell that ran meanwhile');
  await house.command('drupe:show-panel');
  const item = panel(house).locator('.drupe-error', { hasText: 'sequence_f64' });
  await item.waitFor();
  await house.picture(`${name}-error`);
  await house.page.evaluate(() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 3; });
  await item.click();
  equal(await house.page.evaluate(() => window.jupyterapp.shell.currentWidget.content.activeCellIndex), 0, 'the cell of the error');

  await house.run(2);
  await house.shows(2, 'SIGSEGV');
  await house.shows(2, 'sequence_f64');
  await house.picture(`${name}-crash`);
  await house.status('idle');
  await house.run(3);
  await house.shows(3, 'after');
  await until(async () => (await panel(house).innerText()).includes('No device has worked yet'), 'the panel of the new kernel');
  await house.save(notebook, 3, 'after');
  await house.go(`${app}/${notebook}`);
  await house.shows(0, 'Submitted by cell [1], line 7');
  await house.shows(2, 'SIGSEGV');
}

scenario("JupyterLab: errors and a crash are under their cells", house => failures(house, 'lab/tree', 'lab'));
scenario("Notebook 7: errors and a crash are under their cells", house => failures(house, 'notebooks', 'notebook'));

scenario("the panel moves neither the status of the kernel nor its last activity", async house => {
  await house.notebook([WORK, 'import time, os\nwhile not os.path.exists("go"): time.sleep(0.01)'], {});
  await house.run(0);
  await house.ended(0);
  await house.command('drupe:show-panel');
  await panel(house).locator('.drupe-card').waitFor();
  await house.status('idle');
  await house.record();
  const id = await house.page.evaluate(() => {
    const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
    window.replies = 0;
    kernel.anyMessage.connect((_, { msg }) => { window.replies += msg.header.msg_type === 'debug_reply' ? 1 : 0; });
    return kernel.id;
  });
  const counted = () => house.page.evaluate(() => [window.states, window.replies]);
  const served = async () => {
    const { execution_state, last_activity } = await rest(`api/kernels/${id}`);
    return [execution_state, last_activity];
  };
  // Five answers, and what else has happened until they were there.
  const five = async () => {
    const [before, [states, replies]] = [await served(), await counted()];
    await until(async () => (await counted())[1] >= replies + 5, 'five answers');
    return [(await counted())[0].slice(states.length), await served(), before];
  };
  let found = await five();
  for (let i = 0; i < 3 && found[0].length; ++i) found = await five(); // JupyterLab itself asks this and that at first
  equal(found.slice(0, 2), [[], found[2]], 'an idle kernel');
  equal(found[2][0], 'idle', 'the state');
  await house.run(1);
  await house.status('busy');
  const [states, [state]] = await five();
  equal([states, state], [[], 'busy'], 'a busy kernel');
  await house.command('notebook:interrupt-kernel');
  await house.ended(1);
});

// Two devices where there are two, as the README shows them.
const PICTURE = [
  '%dashboard',
  `import drupe, drupe.array as da, numpy as np
device = (drupe.devices("opencl") + drupe.devices("host"))[0]
x = da.asarray(np.linspace(0, 6, 1_000_000), device=device)
for step in range(12):
    x = da.sin(x) * da.exp(-x)
float(x.max())`,
  `y = da.asarray(da.asnumpy(x), device="host")
for step in range(30):
    y = da.sqrt(y * y + 1)
z = da.asarray(da.asnumpy(y), device=device)
float(y.max()), float(da.sin(z).max())`];

scenario("what the README shows", async house => {
  await house.page.setViewportSize({ width: 1200, height: 800 });
  await house.notebook(PICTURE, {});
  await house.command('drupe:show-panel');
  await house.command('application:toggle-left-area');
  await house.runAll();
  await house.ended(2);
  await house.page.locator('.drupe-panel .drupe-cell', { hasText: '[3]' }).waitFor();
  await house.status('idle');
  await house.sweep(timeline(house.cell(0)), 46, ['cell ['], 150);
  await house.picture('readme-light');
  await house.theme('JupyterLab Dark');
  await house.sweep(timeline(house.cell(0)), 46, ['cell ['], 150);
  await house.picture('readme-dark');
});

scenario("a late failure is one line that leads to its cell", async house => {
  await house.notebook(['import drupe, testwork\nfrom drupe import _engine\nhold = _engine._event_open("hold")\n' +
    'event = testwork.task(drupe.Queue("host"), 0, "the bearing broke", [hold])',
  'hold._finish()\nwhile not event.done: pass\n1+1', 'print("never")'], {});
  await house.runAll();
  await house.shows(0, 'the bearing broke');
  await house.shows(1, 'Work of cell [1] failed after its end');
  const outputs = house.cell(1).locator('.jp-OutputArea-output');
  equal((await outputs.allInnerTexts())[0].trim(), '2', 'the result');
  equal([await outputs.count(), await house.cell(1).getByText('Traceback').count()], [2, 0], 'outputs, tracebacks');
  check((await outputs.nth(1).boundingBox()).height < 60, 'a line or two');
  await house.picture('late-failure');
  const active = () => house.page.evaluate(() => window.jupyterapp.shell.currentWidget.content.activeCellIndex);
  check(await active() !== 0, 'another cell is active');
  await house.cell(1).getByText('cell [1]', { exact: true }).click();
  await until(async () => (await active()) === 0, 'the cell that failed');
  equal(await house.cell(2).locator('.jp-OutputArea-output').count(), 0, 'outputs of the cell that was queued');
});

await main(name => Browser.open(name));
