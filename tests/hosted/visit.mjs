// What the scenes at a hub share: a browser, and people with cookies of their own who log in.
import { mkdirSync } from 'node:fs';
import { equal, require, url } from '../clients/harness.mjs';

const { chromium } = require('playwright-core');
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
const { DRUPE_PICTURES, DRUPE_USERS, DRUPE_PASSWORD, DRUPE_ADMIN, DRUPE_ADMIN_PASSWORD } = process.env;

export const users = DRUPE_USERS.split(',');
export const password = DRUPE_PASSWORD;
export const admin = { name: DRUPE_ADMIN, password: DRUPE_ADMIN_PASSWORD };

export class Visit {
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

export async function logIn(page, name, secret, next = '/hub/spawn') {
  await page.goto(`${url}/hub/login?next=${encodeURIComponent(next)}`);
  await page.fill('#username_input', name);
  await page.fill('#password_input', secret);
  await page.click('#login_submit');
  await page.waitForURL(`**${next}`);
}
