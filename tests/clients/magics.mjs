// The magics in JupyterLab: what they show, and that Tab and Shift-Tab know them.
import { Browser } from './browser.mjs';
import { check, equal, main, scenario, until } from './harness.mjs';

const TWICE = 'kernel void twice(global float *a, int n) {\n    a[get_global_id(0)] *= n;\n}';
const MAGICS = [
  '%devices -v',
  `%%opencl -a -n program\n${TWICE}`,
  `%%opencl\n${TWICE.replace('n;', 'm;')}`,
  "import drupe, drupe.array as da\nx = da.ones(100_000, dtype='float32', device='opencl:cpu')\nq = drupe.Queue('opencl:cpu', profiling=True)",
  '%devtime -n 20 -r 3 twice(x, 2, global_size=x.size, queue=q)',
  "import concurrent.futures\nfuture = concurrent.futures.Future()\ngate = drupe.Event.from_future(future)\nheld = twice(x, 2, global_size=1, wait_for=[gate])\n%queue",
  'future.set_result(1)\n%queue finish -q\n%%device host',
  "def broken():\n    raise ValueError('grüße')\ntry:\n    q.host_task(broken).wait()\nexcept drupe.DeviceError: pass",
  '%deverrors',
  '%devtime -h'
];

scenario("the magics in JupyterLab", async house => {
  const cells = MAGICS.map(text => text.replace('\n%%device host', ''));
  await house.notebook(cells);
  await house.page.setViewportSize({ width: 1100, height: 2300 });
  for (let i = 0; i < cells.length; i++) {
    await house.run(i);
    await house.ended(i);
  }
  await house.shows(0, 'host:cpu:0*');
  await house.shows(1, 'twice');
  await house.shows(2, "undeclared identifier 'm'");
  await house.shows(4, "by the device's clock");
  await house.shows(5, 'the host');
  await house.shows(8, 'grüße');
  await house.shows(9, 'STATEMENT');
  for (const i of [0, 4, 5, 8, 9]) check(await house.cell(i).locator('.jp-RenderedHTML table, .jp-RenderedHTML div').count(), `HTML of ${i}`);
  await house.picture('magics-light');
  await house.theme('JupyterLab Dark');
  await house.picture('magics-dark');
});

async function highlightC(house, app) {
  const source = '%%opencl\nkernel void f(global float *a) { /* of C */ a[0] = 1.0f; }';
  await house.notebook([source, 'x = 7 // 2', '%%cl_kernel\n/* of C */'], { app });
  const comment = i => house.cell(i).locator('.cm-line span').filter({ hasText: /^\/\* of C \*\/$/ });
  await comment(0).waitFor();
  await comment(2).waitFor();
  const types = () => house.page.evaluate(
    () => window.jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.mimeType));
  equal(await types(), ['text/x-csrc', 'text/x-ipython', 'text/x-csrc'], 'types of cells');
  if (app === 'lab/tree') await house.picture('highlight');
  // As somebody types.
  await house.cell(1).locator('.cm-content').click();
  await house.page.keyboard.press('Control+Home');
  await house.page.keyboard.type('%%opencl\n/* of C */ ');
  await comment(1).waitFor();
  for (let i = 0; i < 3; i++) await house.page.keyboard.press('Control+Home');
  await house.page.keyboard.press('Delete');
  await until(async () => (await types())[1] === 'text/x-ipython', 'Python again');
}

scenario("JupyterLab shows cells of C as C", house => highlightC(house, 'lab/tree'));
scenario("Notebook 7 shows cells of C as C", house => highlightC(house, 'notebooks'));

scenario("Tab completes a magic's options and devices", async house => {
  await house.notebook(['import drupe; _ = drupe.devices()', '%devices --', '%%opencl -d ho\n']);
  await house.run(0);
  await house.ended(0);
  for (const [i, presses, wanted] of [[1, [], '--verbose'], [2, ['ArrowUp', 'End'], 'host:cpu:0']]) {
    await house.cell(i).locator('.cm-content').click();
    await house.page.keyboard.press('Control+End');
    for (const key of presses) await house.page.keyboard.press(key);
    const found = house.page.locator('.jp-Completer-item', { hasText: wanted });
    await until(async () => { // JupyterLab drops answers that come late
      await house.page.keyboard.press('Tab');
      return found.first().waitFor({ timeout: 5000 }).then(() => true, () => false);
    }, `${wanted} among the completions`);
    if (i === 1) await house.picture('magics-completion');
    await house.page.keyboard.press('Escape');
  }
});

await main(() => Browser.open(process.argv[2]));
