// Pictures of what a long session, a mistake and many objects look like; each is also looked into.
import { Browser } from './browser.mjs';
import { check, equal, main, scenario, until } from './harness.mjs';

const panel = house => house.page.locator('.drupe-panel');

async function pictures(house, name) {
  await house.picture(`${name}-light`);
  await house.theme('JupyterLab Dark');
  await house.page.waitForTimeout(2000); // charts take the colours of the theme when its style sheet has come
  await house.picture(`${name}-dark`);
  await house.theme('JupyterLab Light');
}

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
  await pictures(house, 'fifty');
});

await main(name => Browser.open(name));
