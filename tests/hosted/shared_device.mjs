// One device and three people: a kernel that rests gives it up, and gets it back when a cell needs it.
import { check, equal, main, scenario, url } from '../clients/harness.mjs';
import { logIn, password, users, Visit } from './visit.mjs';

const [alice, bob, carol] = users;
const PROFILE = 'The whole processor';

async function choose(page) {
  await page.locator('.drupe-profile', { hasText: PROFILE }).click();
  await page.click('#spawn_form button[type=submit]');
}

// A notebook in JupyterLab, as a person uses it.
class Notebook {
  constructor(page) {
    this.page = page;
  }

  static async open(page, user, file) {
    await page.goto(`${url}/user/${user}/lab/tree/${file}`);
    const notebook = new Notebook(page);
    await notebook.cell(0).waitFor();
    await page.locator('#jupyterlab-splash').waitFor({ state: 'detached' });
    return notebook;
  }

  cell(i) {
    return this.page.locator(`.jp-Notebook .jp-Cell[data-windowed-list-index="${i}"]`);
  }

  async run(i) {
    await this.cell(i).locator('.jp-InputArea-editor').click();
    await this.page.keyboard.press('Control+Enter');
  }

  async shows(i, text) {
    await this.cell(i).locator('.jp-OutputArea-output', { hasText: text }).first().waitFor();
  }

  async says(text) {
    await this.page.locator('.drupe-lease', { hasText: text }).waitFor();
  }
}

scenario("a device that others need", async visit => {
  const first = await visit.person();
  await logIn(first, alice, password);
  await choose(first);
  await first.waitForURL(`**/user/${alice}/lab**`);
  const notebook = await Notebook.open(first, alice, 'heat.ipynb');
  await first.keyboard.press('Control+b'); // room for the notebook and the panel
  await first.locator('.drupe-status').click();
  await notebook.says(/^Leased: Processor of this machine · 5\d min left$/);
  await notebook.run(0);
  await notebook.run(1);
  await notebook.cell(1).locator('.jp-Stdin-input').waitFor();

  const second = await visit.person();
  await logIn(second, bob, password);
  check(await second.locator('.drupe-profile', { hasText: PROFILE }).locator('text=in use: you would wait').count(), 'it says so');
  await choose(second);
  await second.locator('#progress-message', { hasText: 'Waiting for a device: number 1 in the queue' }).waitFor();
  await notebook.says('1 other in the queue');
  await visit.picture(first, 'hosted-panel', 610);

  await notebook.cell(1).locator('.jp-Stdin-input').fill('no');
  await first.keyboard.press('Enter');
  await notebook.shows(1, 'The device is with others now, because they waited and this notebook was idle.');
  await notebook.says('The device is with others. It comes back when a cell needs it.');
  await second.waitForURL(`**/user/${bob}/lab**`);

  const third = await visit.person();
  await logIn(third, carol, password);
  await choose(third);
  await third.locator('#progress-message', { hasText: 'Waiting for a device: number 1 in the queue' }).waitFor();
  await notebook.run(2); // which needs no device
  await notebook.shows(2, 'NO');
  await notebook.run(3);
  await notebook.shows(3, 'Waiting for a device: 1 before you.');
  await notebook.says('A cell waits for the device: 1 before it.');
  await visit.picture(first, 'hosted-parking', 610);
  await third.click('#stop-server-btn');
  await notebook.shows(3, 'Waiting for a device: you are next.');
  await notebook.says('A cell waits for the device: it is next.');

  await second.goto(`${url}/hub/home`);
  await second.click('#stop');
  await notebook.shows(3, 'MiB came back in');
  await notebook.shows(3, '100.0');
  await notebook.shows(1, 'The device was with others for');
  await notebook.says('Leased: Processor of this machine');
  equal(await notebook.cell(1).getByText('is with others now').count(), 0, 'the notice of what is over');
  await visit.picture(first, 'hosted-back');
});

await main(name => Visit.open(name));
