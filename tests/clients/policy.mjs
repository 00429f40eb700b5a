// The panel under a strict content security policy: see POLICIES in test_panel.py.
import { writeFileSync } from 'node:fs';
import { Browser } from './browser.mjs';
import { check, equal, main, scenario } from './harness.mjs';
import { ERROR, answer, madeUp } from './views.mjs';

scenario("a strict content security policy", async house => {
  writeFileSync(`${process.env.DRUPE_NOTEBOOKS}/view.json`, JSON.stringify(madeUp()));
  await house.notebook(["display({'application/vnd.drupe.trace+json': __import__('json').load(open('view.json'))}, raw=True)"]);
  await house.answering(answer, { view: madeUp(), error: ERROR });
  await house.run(0);
  await house.command('drupe:show-panel');
  await house.page.locator('.drupe-panel .drupe-card').waitFor();
  await house.page.locator('.drupe-error').waitFor();
  await house.sweep(house.page.locator('.drupe-panel .drupe-timeline canvas'), 46, ['vadd']);
  await house.sweep(house.cell(0).locator('.drupe-timeline canvas'), 46, ['vadd']);
  const width = await house.page.locator('.drupe-meter-fill').first().evaluate(node => node.style.width);
  equal(width, '50%', 'styles that are set one by one');
  const height = await house.page.locator('.drupe-meter').first().evaluate(node => getComputedStyle(node).height);
  equal(height, '8px', 'the style sheet');
  const stopped = await house.page.evaluate(() => window.stopped);
  check(stopped.length > 0, 'the policy is in force: it finds JupyterLab');
  equal(stopped.filter(text => text.includes('extensions/drupe')), [], 'what the policy has stopped of ours');
  await house.picture('strict-policy');
});

await main(name => Browser.open(name));
