// What the browser scripts share: a page with a notebook in JupyterLab or Notebook 7, and what a user does there.
import { mkdirSync, writeFileSync } from 'node:fs';
import { require, rest, token, until, url } from './harness.mjs';

const { chromium } = require('playwright-core');
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
const DEADLINE = 180000; // ms; on a busy machine a page takes its time

let made = 0;

export class Browser {
  static async open(name) {
    const house = new Browser();
    house.name = name.replace(/[^a-z0-9]+/gi, '-').toLowerCase();
    house.browser = await chromium.launch({ executablePath: process.env.DRUPE_CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });
    house.page = await house.browser.newPage({ viewport: { width: 1200, height: 950 } });
    house.page.setDefaultTimeout(DEADLINE);
    house.errors = [];
    house.page.on('pageerror', error => house.errors.push(error.stack ?? String(error)));
    await house.page.addInitScript(() => { // what a content security policy has stopped, and where
      window.stopped = [];
      document.addEventListener('securitypolicyviolation', event => window.stopped.push(
        `${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}`));
    });
    return house;
  }

  async picture(name) {
    await this.page.locator('#jupyterlab-splash').waitFor({ state: 'detached' }); // a change of theme shows it
    await this.page.screenshot({ path: `${process.env.DRUPE_PICTURES}/${name}.png` });
  }

  // What a page looks like in both themes.
  async pictures(name) {
    await this.picture(`${name}-light`);
    await this.theme('JupyterLab Dark');
    await this.picture(`${name}-dark`);
    await this.theme('JupyterLab Light');
  }

  async failed() {
    console.log(this.errors.join('\n'));
    await this.picture(`failed-${this.name}`);
  }

  async close() {
    await this.browser.close();
    for (const session of await rest('api/sessions')) await rest(`api/sessions/${session.id}`, 'DELETE');
  }

  // Open a page of the application; its plugins are up when this returns.
  async go(path) {
    await this.page.goto(`${url}${path}${path.includes('?') ? '&' : '?'}token=${token}`);
    await this.page.waitForFunction(() => window.jupyterapp?.shell);
    await this.page.evaluate(() => window.jupyterapp.restored ?? window.jupyterapp.started);
    await this.theme('JupyterLab Light'); // the last scenario's stays otherwise
  }

  // Change the theme; its style sheet has come and all charts in sight are drawn with it when this returns.
  async theme(name) {
    const light = name.includes('Light');
    await this.command('apputils:change-theme', { theme: name });
    await this.page.waitForFunction(light => {
      const ground = node => getComputedStyle(node).getPropertyValue('--jp-layout-color1').trim();
      const bright = { white: 255 }[ground(document.body)] ?? parseInt(ground(document.body).slice(1, 3).padEnd(2, 'f'), 16);
      return document.body.dataset.jpThemeLight === String(light) && (bright > 127) === light &&
        [...document.querySelectorAll('.drupe-canvas')].every(node =>
          !node.clientWidth || !node.dataset.ground || node.dataset.ground === ground(node));
    }, light);
  }

  command(id, args = {}) {
    return this.page.evaluate(([id, args]) => void window.jupyterapp.commands.execute(id, args), [id, args]);
  }

  // Make a notebook of these cells and open it, in JupyterLab ('lab/tree') or Notebook 7 ('notebooks').
  async notebook(cells, { app = 'lab/tree', kernel = 'drupe' } = {}) {
    const file = `${this.name}-${++made}.ipynb`;
    const notebook = {
      nbformat: 4, nbformat_minor: 5,
      metadata: { kernelspec: { name: kernel, display_name: 'Python 3 (Drupe)', language: 'python' } },
      cells: cells.map((source, i) => source.startsWith('# ') && !source.includes('\n')
        ? { cell_type: 'markdown', id: `c${i}`, metadata: {}, source: source.slice(2) }
        : { cell_type: 'code', id: `c${i}`, metadata: {}, source, outputs: [], execution_count: null })
    };
    mkdirSync(process.env.DRUPE_NOTEBOOKS, { recursive: true });
    writeFileSync(`${process.env.DRUPE_NOTEBOOKS}/${file}`, JSON.stringify(notebook));
    await this.go(`${app}/${file}${app === 'lab/tree' ? '?reset' : ''}`);
    await this.page.locator('.jp-Notebook').waitFor();
    await this.status('idle');
    return file;
  }

  // Save until output `i` of the file has `text`; its cells. A save that comes while another one goes on is left out.
  async save(file, i, text) {
    return until(async () => {
      await this.command('docmanager:save');
      await this.page.waitForTimeout(500);
      const { cells } = (await rest(`api/contents/${file}`)).content ?? {};
      return JSON.stringify(cells?.[i]?.outputs ?? '').includes(text) && cells;
    }, `the save of ${file}`);
  }

  kernel() {
    return this.page.evaluate(() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status);
  }

  // What the kernel becomes from now on, in window.states.
  async record() {
    await this.page.evaluate(() => {
      window.states = [];
      const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
      kernel.statusChanged.connect((_, status) => window.states.push(status));
    });
  }

  async became(...wanted) {
    await until(() => this.page.evaluate(wanted => window.states.some(state => wanted.includes(state)), wanted),
      `a kernel that becomes ${wanted}`, DEADLINE / 1000);
  }

  async status(wanted) {
    await until(async () => (await this.kernel()) === wanted, `a kernel that is ${wanted}`, DEADLINE / 1000);
  }

  cell(i) {
    return this.page.locator(`.jp-Notebook .jp-Cell[data-windowed-list-index="${i}"]`);
  }

  // Type a text into a cell and run it.
  async run(i) {
    await this.page.evaluate(i => {
      const notebook = window.jupyterapp.shell.currentWidget.content;
      notebook.activeCellIndex = i;
      notebook.deselectAll();
    }, i);
    await this.command('notebook:run-cell');
  }

  async runAll() {
    await this.command('notebook:run-all-cells');
  }

  // Wait until cell `i` shows `text`.
  async shows(i, text) {
    await this.cell(i).locator('.jp-OutputArea-output', { hasText: text }).first().waitFor();
  }

  // Give the panel's questions to the current kernel answers of the test's own: `answer(request)` runs in the page and
  // returns the body of the reply. What was asked is in window.asked.
  async answering(answer, argument) {
    const install = (answer, argument) => {
      window.asked = [];
      const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
      kernel.requestDebug = request => {
        window.asked.push(request);
        const body = answer(request, argument);
        const content = body ? { success: true, body } : { success: false, message: 'nothing yet' };
        return { isDisposed: false, dispose() {}, done: Promise.resolve({ content }) };
      };
    };
    await this.page.evaluate(`(${install})(${answer}, ${JSON.stringify(argument)})`);
  }

  // Sweep the pointer along `locator`, `y` below its top, until a tip shows that has all these words; its text.
  async sweep(locator, y, words, from = 60) {
    const tip = this.page.locator('.drupe-tip:visible');
    const seen = new Set();
    return until(async () => {
      await locator.scrollIntoViewIfNeeded();
      const box = await locator.boundingBox();
      for (let x = from; box && x < box.width - 4; x += 5) {
        await this.page.mouse.move(box.x + x, box.y + y);
        const [text] = await tip.allInnerTexts();
        if (text && words.every(word => text.includes(word))) return text;
        if (text) seen.add(text);
      }
      return '';
    }, () => `${words.join(', ')} among: ${[...seen].slice(0, 20).join('\n')}`, DEADLINE / 1000);
  }

  // Wait until cell `i` has run to its end.
  async ended(i) {
    await until(() => this.page.evaluate(i => {
      const cell = window.jupyterapp.shell.currentWidget.content.widgets[i];
      return cell.model.executionCount !== null && cell.model.executionState !== 'running' && cell.prompt !== '*';
    }, i), `the end of cell ${i}`, DEADLINE / 1000);
  }

  async accept() {
    await this.page.locator('.jp-Dialog .jp-mod-accept').click();
  }
}
