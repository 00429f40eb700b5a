// What devices report in the output of cells: late errors, text of kernels, objects, progress.
import { writeFileSync } from 'node:fs';
import { Browser } from './browser.mjs';
import { check, equal, main, scenario, until } from './harness.mjs';

const late = path => [
  "import drupe, testwork\nfrom drupe import _engine\nqueue = drupe.Queue('host')\ngate = _engine._event_open('gate')",
  "# the work is submitted here ...\nsteps = 3\nevent = testwork.task(queue, 0.0, 'the bearing broke', [gate])\nprint('submitted')",
  `# ... and fails when this cell has ended, too\nimport os, threading, time\ndef wait():\n    while not os.path.exists('${path}'): ` +
    `time.sleep(0.01)\n    gate._finish()\nthreading.Thread(target=wait).start()`,
  "queue.wait()",
];

async function lateError(house, app) {
  const file = `${process.env.DRUPE_NOTEBOOKS}/${house.name}.fails`;
  await house.notebook(late(file), { app });
  for (const cell of [0, 1, 2]) {
    await house.run(cell);
    await house.ended(cell);
  }
  writeFileSync(file, '');
  await house.shows(1, 'the bearing broke');
  await house.shows(1, '----> 3 event');
  const [first] = await house.cell(1).locator('.jp-OutputArea-output').allTextContents();
  check(first.includes('submitted'), 'the text of the cell stays');
  await house.run(3);
  await house.shows(3, 'the bearing broke');
  await house.status('idle');
}

scenario("a late error appears under its cell in JupyterLab", async house => {
  await lateError(house, 'lab/tree');
  await house.picture('late-error-light');
  await house.theme('JupyterLab Dark');
  await house.picture('late-error-dark');
});

scenario("a late error appears under its cell in Notebook 7", async house => {
  await lateError(house, 'notebooks');
});

const OBJECTS = [
  "import drupe, drupe.array as da\nfrom drupe import _engine\ndevice = drupe.Device('host')\ngate = _engine._event_open('gate')\ndevice",
  "queue = drupe.Queue(device)\nx = da.arange(12, device=queue).reshape(3, 4)\nx",
  "event = queue.barrier(wait_for=[gate])\nevent",
  "bar = drupe.progress([event, gate, queue.barrier()], 'sweep')\nqueue",
  "gate._finish()\nbar.wait();",
  "drupe.memory.pool(device)",
];

scenario("objects show themselves, and events once more", async house => {
  await house.notebook(OBJECTS, {});
  for (const cell of [0, 1, 2, 3]) {
    await house.run(cell);
    await house.ended(cell);
  }
  await house.shows(0, 'host:cpu:0');
  await house.shows(1, '[[0, 1, 2, 3],');
  await house.shows(2, 'queued');
  await house.shows(3, '0/3');
  for (const cell of [4, 5]) {
    await house.run(cell);
    await house.ended(cell);
  }
  await house.shows(2, 'complete');
  await house.shows(3, 'done');
  const text = await house.cell(2).locator('.jp-OutputArea-output').allTextContents();
  equal(text.length, 1, 'outputs of the event');
  check(!text[0].includes('queued'), 'the event has taken the place of itself');
  await house.picture('objects-light');
  await house.theme('JupyterLab Dark');
  await house.picture('objects-dark');
});

await main(name => Browser.open(name));
