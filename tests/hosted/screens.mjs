// A person at the hub: log in, choose a profile, get JupyterLab, look at the devices, log out.
import { mkdirSync } from 'node:fs';
import { check, equal, main, require, scenario, until, url } from '../clients/harness.mjs';

const { chromium } = require('playwright-core');
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
const { DRUPE_PICTURES, DRUPE_USERS, DRUPE_PASSWORD, DRUPE_ADMIN, DRUPE_ADMIN_PASSWORD } = process.env;
const users = DRUPE_USERS.split(',');

class Visit {
  static async open(name) {
    const visit = new Visit();
    visit.name = name.replace(/[^a-z0-9]+/gi, '-').toLowerCase();
    visit.browser = await chromium.launch({ executablePath: process.env.DRUPE_CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });
    visit.pages = [];
    visit.errors = [];
    return visit;
  }

  // A person with cookies of their own.
  async person(dark = false) {
    const context = await this.browser.newContext({ viewport: { width: 1100, height: 760 }, colorScheme: dark ? 'dark' : 'light' });
    const page = await context.newPage();
    page.setDefaultTimeout(120000);
    page.on('pageerror', error => this.errors.push(error.stack ?? String(error)));
    this.pages.push(page);
    return page;
  }

  async picture(page, name, height = 760) {
    mkdirSync(DRUPE_PICTURES, { recursive: true });
    await page.screenshot({ path: `${DRUPE_PICTURES}/${name}.png`, clip: { x: 0, y: 0, width: 1100, height } });
  }

  async failed() {
    for (const [index, page] of this.pages.entries()) await this.picture(page, `failed-${this.name}-${index}`);
  }

  async close() {
    await this.browser.close();
    equal(this.errors, [], 'the errors of pages');
  }
}

async function logIn(page, name, password, next = '/hub/spawn') {
  await page.goto(`${url}/hub/login?next=${encodeURIComponent(next)}`);
  await page.fill('#username_input', name);
  await page.fill('#password_input', password);
  await page.click('#login_submit');
  await page.waitForURL(`**${next}`);
}

async function devices(page, drawn) {
  await page.goto(`${url}/hub/devices`);
  await page.locator('#drupe-devices[data-drawn]').waitFor();
  await page.locator('#drupe-summary', { hasText: drawn }).waitFor();
}

scenario("a day at the hub", async visit => {
  const first = await visit.person();
  await logIn(first, users[0], DRUPE_PASSWORD);
  check(await first.locator('.drupe-profile').count() >= 4, 'there is a card for each profile');
  check(await first.locator('input[value="three-gpus"]').isDisabled(), 'what the machine lacks cannot be chosen');
  await first.locator('.drupe-profile', { hasText: 'Half of the processor' }).click();
  check(await first.locator('input[value="half-cpu"]').isChecked(), 'a click on a card chooses it');
  await visit.picture(first, 'hub-profiles', 440);
  await first.click('#spawn_form button[type=submit]');
  await first.waitForURL(`**/user/${users[0]}/lab**`);
  await first.locator('.jp-Launcher, .jp-Notebook').first().waitFor();

  const second = await visit.person();
  await logIn(second, users[1], DRUPE_PASSWORD);
  await second.locator('.drupe-profile', { hasText: 'Two GPUs' }).click();
  await second.click('#spawn_form button[type=submit]');
  await second.waitForURL(`**/user/${users[1]}/lab**`);

  const third = await visit.person(true);
  await logIn(third, users[2], DRUPE_PASSWORD);
  await third.locator('.drupe-profile', { hasText: 'One GPU' }).click();
  check(await third.locator('.drupe-profile', { hasText: 'One GPU' }).locator('text=in use: you would wait').count(), 'it says so');
  await third.click('#spawn_form button[type=submit]');
  await third.locator('#progress-message', { hasText: 'Waiting for a device: number 1 in the queue' }).waitFor();
  await visit.picture(third, 'hub-waiting');
  await third.click('#stop-server-btn'); // and ask again
  await third.locator('a', { hasText: 'Launch Server' }).click();
  await third.locator('.drupe-profile', { hasText: 'One GPU' }).click();
  await third.click('#spawn_form button[type=submit]');
  await third.locator('#progress-message', { hasText: 'Waiting for a device: number 1 in the queue' }).waitFor();

  await devices(first, '1 waits');
  equal(await first.locator('#drupe-leases tbody tr').allInnerTexts().then(rows => rows.map(row => row.split('\t')[0])),
    ['you', 'other users'], 'whose leases a user sees');
  await visit.picture(first, 'hub-devices-user');
  const admin = await visit.person();
  await logIn(admin, DRUPE_ADMIN, DRUPE_ADMIN_PASSWORD, '/hub/home');
  await devices(admin, '1 waits');
  equal(await admin.locator('#drupe-leases tbody tr').count(), 2, 'the leases that an admin sees');
  await admin.locator('.drupe-row', { hasText: 'load' }).waitFor();
  await visit.picture(admin, 'hub-devices', 540);
  await admin.evaluate(() => { document.documentElement.dataset.bsTheme = 'dark'; });
  await visit.picture(admin, 'hub-devices-dark');

  await second.goto(`${url}/hub/home`);
  await second.click('#stop');
  await third.waitForURL(`**/user/${users[2]}/lab**`);
  await admin.locator('#drupe-summary', { hasText: 'nobody waits' }).waitFor(); // by itself
  await first.goto(`${url}/hub/home`);
  await first.click('#logout');
  await until(async () => !(await first.context().cookies()).some(cookie => cookie.name === 'jupyterhub-hub-login'), 'the log-out');
  await first.goto(`${url}/hub/devices`);
  await first.locator('#username_input').waitFor();
});

await main(name => Visit.open(name));
