// The server of a call is gone in mid-call, and the page saves the call. Options: url, browser,
// words (what is written before; the backend is parrot, which answers in writing), owners (pid of
// each transceiver by its address: the one that has the call is killed, or told to end by `signal`),
// away (pids killed just before), after (what is written then), hang_up (the person has enough once
// the page sees it). Prints what there was before and is after, and how long it took.

import { setTimeout as sleep } from 'node:timers/promises';
import { openTalkPage, run } from './driver.mjs';
import { hangUp, untilHeard } from './measure.mjs';
import {
  converse,
  keepChannels,
  look,
  owner,
  restored,
  times,
  until,
  untilSaved,
  watchRescue,
} from './rescue.mjs';

const STORED_MS = 2_000; // items are stored behind the call, where Redis is slow a second later

await run(async (browser, options) => {
  const { page, faults } = await openTalkPage(browser, options);
  const begun = [];
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url());
    if (request.method() === 'POST' && pathname.endsWith('/calls')) begun.push(search);
  });
  await page.evaluate(keepChannels);
  await page.evaluate(() => window.ferryline.start());
  const heard = await page.evaluate(untilHeard, 30_000);
  await page.evaluate(() => document.getElementById('mute').click()); // nothing is said, only written
  for (const text of options.words ?? []) await converse(page, text);
  const endpoint = await page.evaluate(owner);
  const before = await page.evaluate(look);
  await page.evaluate(watchRescue);
  await sleep(STORED_MS);

  for (const pid of options.away ?? []) process.kill(pid, 'SIGKILL');
  const killed = performance.timeOrigin + performance.now();
  process.kill(options.owners[endpoint], options.signal ?? 'SIGKILL');
  if (options.hang_up) {
    await until(page, () => window.rescue.noticed !== null);
    await page.evaluate(() => window.ferryline.stop());
    await sleep(2_000);
    const after = await page.evaluate(() => ({
      state: document.body.dataset.state,
      call_id: window.ferryline.callId,
    }));
    return { heard, endpoint, before, after, begun, faults };
  }
  await untilSaved(page);
  const after = await page.evaluate(look);
  const items = await page.evaluate(restored);
  if (options.after) await converse(page, options.after);
  const end = await page.evaluate(look);
  const now = await page.evaluate(owner);
  const rescue = await page.evaluate(() => window.rescue);
  await page.evaluate(hangUp);
  const took = times(rescue, killed);
  return { heard, endpoint, now, before, after, items, end, times: took, rescue, begun, faults };
});
