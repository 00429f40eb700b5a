// A person at the hub: log in, choose a profile, get JupyterLab, look at the devices, log out.
import { check, equal, main, scenario, until, url } from '../clients/harness.mjs';
import { admin as ADMIN, logIn, password, users, Visit } from './visit.mjs';

async function devices(page, drawn) {
  await page.goto(`${url}/hub/devices`);
  await page.locator('#drupe-devices[data-drawn]').waitFor();
  await page.locator('#drupe-summary', { hasText: drawn }).waitFor();
}

scenario("a day at the hub", async visit => {
  const first = await visit.person();
  await logIn(first, users[0], password);
  check(await first.locator('.drupe-profile').count() >= 4, 'there is a card for each profile');
  check(await first.locator('input[value="three-gpus"]').isDisabled(), 'what the machine lacks cannot be chosen');
  await first.locator('.drupe-profile', { hasText: 'Half of the processor' }).click();
  check(await first.locator('input[value="half-cpu"]').isChecked(), 'a click on a card chooses it');
  await visit.picture(first, 'hub-profiles', 440);
  await first.click('#spawn_form button[type=submit]');
  await first.waitForURL(`**/user/${users[0]}/lab**`);
  await first.locator('.jp-Launcher, .jp-Notebook').first().waitFor();

  const second = await visit.person();
  await logIn(second, users[1], password);
  await second.locator('.drupe-profile', { hasText: 'Two GPUs' }).click();
  await second.click('#spawn_form button[type=submit]');
  await second.waitForURL(`**/user/${users[1]}/lab**`);

  const third = await visit.person(true);
  await logIn(third, users[2], password);
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
  await logIn(admin, ADMIN.name, ADMIN.password, '/hub/home');
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
