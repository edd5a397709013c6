// A call on a bad path, and what the page makes of it. Options: url, browser, before and during
// (argv that make the path bad before the call, and once it is heard), settle_s, after (argv run
// then; the JSON line it prints goes into the result).

import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openTalkPage, run } from './driver.mjs';
import { hangUp, summary, untilHeard } from './measure.mjs';

async function tell([file, ...args]) {
  const { stdout } = await promisify(execFile)(file, args, { timeout: 10_000 });
  return JSON.parse(stdout.trim().split('\n').at(-1) || 'null');
}

// Keeps every state that the page goes through in `window.states`.
function keepStates() {
  const { dataset } = document.body;
  window.states = [dataset.state];
  new MutationObserver(() => {
    if (window.states.at(-1) !== dataset.state) window.states.push(dataset.state);
  }).observe(document.body, { attributes: true, attributeFilter: ['data-state'] });
}

await run(async (browser, options) => {
  const { page, faults } = await openTalkPage(browser, options);
  await page.evaluate(keepStates);
  if (options.before) await tell(options.before);
  await page.evaluate(() => window.ferryline.start());
  const heard = await page.evaluate(untilHeard, 20_000);
  const first = await page.evaluate(summary);
  if (options.during) await tell(options.during);
  await sleep(options.settle_s * 1_000);
  const last = await page.evaluate(summary);
  const after = options.after ? await tell(options.after) : null;
  const { states, restarts } = await page.evaluate(async () => ({
    states: window.states,
    restarts: (await window.ferryline.stats()).restarts,
  }));
  await page.evaluate(hangUp);
  return { heard, first, last, after, states, restarts, faults };
});
