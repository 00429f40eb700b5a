// JupyterLab and Notebook 7 in a browser: what a user does and sees.
import { Browser } from './browser.mjs';
import { check, equal, main, scenario, until } from './harness.mjs';

const TOUR = [
  '# # A session with Drupe',
  "import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\n6 * 7",
  "import drupe\ndrupe.devices()",
  "%matplotlib inline\nimport matplotlib.pyplot as plt, numpy as np\nx = np.linspace(0, 6.3, 200)\nplt.figure(figsize=(5, 1.6)); plt.plot(x, np.sin(x)); plt.show()",
  "from tqdm.auto import tqdm\nimport time\nfor i in tqdm(range(20), desc='tqdm'): time.sleep(0.02)",
  "def broken(divisor):\n    return 1 / divisor\nbroken(0)"
];

async function runTheTour(house, app) {
  await house.notebook(TOUR, { app });
  await house.runAll();
  await house.shows(5, 'ZeroDivisionError');
  await house.ended(5);
  await house.shows(1, 'to stdout');
  await house.shows(1, 'to stderr');
  await house.shows(1, '42');
  await house.cell(3).locator('.jp-OutputArea-output img').waitFor();
  await house.cell(4).locator('.jp-OutputArea-output .widget-hprogress').waitFor();
  await house.shows(4, '20/20');
  await house.status('idle');
}

scenario("JupyterLab runs a notebook", async house => {
  await runTheTour(house, 'lab/tree');
  await house.page.locator('#jp-main-statusbar >> text=/Idle/').waitFor();
  await house.page.locator('.jp-Toolbar-kernelName', { hasText: 'Python 3 (Drupe)' }).waitFor();
  await house.command('application:toggle-left-area');
  await house.picture('lab-light');
  await house.theme('JupyterLab Dark');
  await house.picture('lab-dark');
});

scenario("Notebook 7 runs a notebook", async house => {
  await runTheTour(house, 'notebooks');
  await house.picture('notebook-light');
  await house.theme('JupyterLab Dark');
  await house.picture('notebook-dark');
});

async function interruptAndRestart(house, app) {
  await house.notebook(["print('begun', flush=True)\nwhile True: pass", "print('alive'); kept = 1", "print('kept' in globals())"],
    { app });
  await house.run(0);
  await house.shows(0, 'begun');
  equal(await house.kernel(), 'busy', 'the state of the kernel');
  await house.page.locator('jp-button[data-command="notebook:interrupt-kernel"], button[data-command="notebook:interrupt-kernel"]').first().click();
  await house.shows(0, 'KeyboardInterrupt');
  await house.run(1);
  await house.shows(1, 'alive');
  await house.run(2);
  await house.shows(2, 'True');
  await house.record();
  await house.command('notebook:restart-kernel');
  await house.accept();
  await house.became('restarting', 'starting');
  await house.status('idle');
  await house.run(2);
  await house.shows(2, 'False');
}

scenario("JupyterLab interrupts and restarts", house => interruptAndRestart(house, 'lab/tree'));
scenario("Notebook 7 interrupts and restarts", house => interruptAndRestart(house, 'notebooks'));

async function answerQuestions(house, app) {
  await house.notebook(["import getpass\nname = input('your name? ')\nword = getpass.getpass('the word? ')",
    "print(name, word)"], { app });
  await house.run(0);
  const box = house.cell(0).locator('.jp-Stdin-input').last();
  await house.cell(0).locator('.jp-Stdin-prompt', { hasText: 'your name?' }).waitFor();
  await box.fill('Zoë');
  if (app === 'lab/tree') await house.picture('lab-input');
  await box.press('Enter');
  await house.cell(0).locator('.jp-Stdin-prompt', { hasText: 'the word?' }).waitFor();
  equal(await box.getAttribute('type'), 'password', 'the second box');
  await box.fill('hush');
  await box.press('Enter');
  await house.ended(0);
  await house.run(1);
  await house.shows(1, 'Zoë hush');
  check(!(await house.cell(0).textContent()).includes('hush'), 'the password is not shown');
}

scenario("JupyterLab answers input()", house => answerQuestions(house, 'lab/tree'));
scenario("Notebook 7 answers input()", house => answerQuestions(house, 'notebooks'));

async function moveASlider(house, app) {
  await house.notebook([
    "import ipywidgets\nslider = ipywidgets.IntSlider(value=3, description='how many')\nout = ipywidgets.Output()\n" +
    "def changed(change):\n    print('printed', change['new'])\n    with out: print('captured', change['new'])\n" +
    "slider.observe(changed, 'value')\nbutton = ipywidgets.Button(description='reset')\n" +
    "def reset(_): slider.value = 0\nbutton.on_click(reset)\nipywidgets.VBox([slider, button, out])",
    "slider.value"], { app });
  await house.run(0);
  const handle = house.cell(0).locator('.noUi-handle');
  await handle.waitFor();
  await house.ended(0);
  const place = await handle.boundingBox();
  await house.page.mouse.move(place.x + place.width / 2, place.y + place.height / 2);
  await house.page.mouse.down();
  await house.page.mouse.move(place.x + 60, place.y + place.height / 2, { steps: 10 });
  await house.page.mouse.up();
  const readout = () => house.cell(0).locator('.widget-readout').textContent();
  const value = await until(async () => {
    const now = await readout();
    return Number(now) > 10 && (await house.cell(0).textContent()).includes(`captured ${now}`) && now;
  }, 'the slider to move, and the kernel to hear of it');
  await house.run(1);
  await house.shows(1, value);
  await house.cell(0).locator('button', { hasText: 'reset' }).click();
  await house.shows(0, 'captured 0');
  await until(async () => (await readout()) === '0', 'the slider at 0');
  if (app === 'lab/tree') await house.picture('lab-widgets');
}

scenario("JupyterLab moves a slider", house => moveASlider(house, 'lab/tree'));
scenario("Notebook 7 moves a slider", house => moveASlider(house, 'notebooks'));

scenario("an anywidget counts", async house => {
  await house.notebook([
    "import anywidget, traitlets\nclass Counter(anywidget.AnyWidget):\n" +
    "    _esm = '''export default { render({ model, el }) { const b = document.createElement(\"button\"); b.id = \"count\";\n" +
    "    const show = () => b.textContent = `count is ${model.get(\"value\")}`; show(); model.on(\"change:value\", show);\n" +
    "    b.onclick = () => { model.set(\"value\", model.get(\"value\") + 1); model.save_changes(); }; el.append(b); } }'''\n" +
    "    value = traitlets.Int(0).tag(sync=True)\ncounter = Counter(); counter",
    "counter.value", "counter.value = 40"]);
  await house.run(0);
  const button = house.page.locator('#count');
  await button.waitFor();
  await house.ended(0);
  await button.click();
  await house.page.locator('#count', { hasText: 'count is 1' }).waitFor();
  await house.run(1);
  await house.shows(1, '1');
  await house.run(2);
  await house.page.locator('#count', { hasText: 'count is 40' }).waitFor();
});

scenario("the launcher, the help menu and the kernel's own words", async house => {
  await house.go('lab?reset');
  const card = house.page.locator('.jp-LauncherCard[title^="Python 3 (Drupe)"]').first();
  await card.waitFor();
  await card.locator('img').first().waitFor();
  check(await card.locator('img').first().evaluate(image => image.complete && image.naturalWidth > 0), 'the logo loads');
  await house.picture('lab-launcher-light');
  await house.theme('JupyterLab Dark');
  await house.picture('lab-launcher-dark');
  await house.theme('JupyterLab Light');
  await card.click();
  await house.page.locator('.jp-Notebook').waitFor();
  await house.status('idle');
  await house.page.locator('.lm-MenuBar-itemLabel', { hasText: 'Help' }).click();
  for (const link of ['Python Reference', 'IPython Reference', 'NumPy Reference']) {
    await house.page.locator('.lm-Menu-itemLabel', { hasText: new RegExp(`^${link}$`) }).waitFor();
  }
  await house.picture('lab-help');
  await house.page.locator('.lm-Menu-itemLabel', { hasText: /About the .*Kernel/ }).click();
  await house.page.locator('.jp-Dialog', { hasText: 'Drupe' }).waitFor();
  await house.picture('lab-about');
});

scenario("the time of each cell is recorded", async house => {
  await house.notebook(["import time; time.sleep(0.2)"]);
  await house.run(0);
  await house.ended(0);
  const times = await until(() => house.page.evaluate(
    () => window.jupyterapp.shell.currentWidget.content.widgets[0].model.getMetadata('execution')), 'the times');
  const stamp = name => Date.parse(times[name]);
  check(stamp('iopub.execute_input') <= stamp('shell.execute_reply'), 'input before reply');
  check(stamp('shell.execute_reply') - stamp('shell.execute_reply.started') >= 200, 'it took 0.2 s');
  check(stamp('iopub.status.busy') <= stamp('iopub.status.idle'), 'busy before idle');
});

scenario("the debugger of JupyterLab", async house => {
  await house.notebook(["def add(a, b):\n    c = a + b\n    return c\n\nprint('sum', add(20, 22))", "print('after')"]);
  await house.command('application:toggle-left-area');
  const bug = house.page.locator('.jp-DebuggerBugButton');
  await bug.locator('xpath=self::*[not(@disabled) and not(@aria-disabled="true")]').waitFor();
  await bug.click();
  await house.page.locator('#jp-debugger-sidebar, .jp-DebuggerSidebar').first().waitFor();
  const gutter = house.cell(0).locator('.cm-breakpoint-gutter .cm-gutterElement');
  await gutter.nth(3).click(); // 0 is the invisible one that measures; so this is line 3
  const breakpoint = house.page.locator('.jp-DebuggerBreakpoint').first();
  await breakpoint.waitFor();
  const line = Number((await breakpoint.textContent()).match(/\d+$/)?.[0]);
  await house.run(0);
  await house.page.locator('.jp-DebuggerCallstack-body li', { hasText: 'add' }).first().waitFor();
  const variables = house.page.locator('.jp-DebuggerVariables');
  for (const value of ['20', '22', '42']) await variables.getByText(value, { exact: true }).first().waitFor();
  await house.picture('lab-debugger-light');
  equal(line, 3, 'the line of the breakpoint');
  await house.theme('JupyterLab Dark');
  await house.picture('lab-debugger-dark');
  await house.command('debugger:next');
  const stack = house.page.locator('.jp-DebuggerCallstack-body li');
  await until(async () => (await stack.filter({ hasText: 'add' }).count()) === 0 && (await stack.count()) > 0,
    'the step out of the function');
  await house.command('debugger:continue');
  await house.shows(0, 'sum 42');
  await house.status('idle');
  await house.run(1);
  await house.shows(1, 'after');
});

await main(name => Browser.open(name));
