// The path is lost in mid-call, and the page mends that by itself. Options: url, browser, lose and
// find (argv: nothing gets through any more; it does again).

import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openTalkPage, run } from './driver.mjs';
import { hangUp, untilHeard } from './measure.mjs';

const LIMIT_MS = 15_000;

const tell = ([file, ...args]) => promisify(execFile)(file, args, { timeout: 10_000 });

function shown() {
  const { callId, pc } = window.ferryline;
  const [, ufrag] = pc.localDescription.sdp.match(/^a=ice-ufrag:(\S+)/m);
  const types = [...document.querySelectorAll('#events-list code')].map((code) => code.textContent);
  return { call_id: callId, ufrag, status: document.getElementById('status').textContent, types };
}

await run(async (browser, options) => {
  const { page, faults } = await openTalkPage(browser, options);
  const state = (wanted) =>
    page.waitForFunction(
      (state) => document.body.dataset.state === state,
      { timeout: LIMIT_MS },
      wanted,
    );
  await page.evaluate(() => window.ferryline.start());
  const heard = await page.evaluate(untilHeard, LIMIT_MS);
  const before = await page.evaluate(shown);
  await tell(options.lose);
  await state('recovering');
  const meanwhile = await page.evaluate(shown);
  await tell(options.find);
  await state('connected');
  await sleep(300); // the events are drawn a few times a second
  const after = {
    ...(await page.evaluate(shown)),
    stats: await page.evaluate(() => window.ferryline.stats()),
  };
  await page.evaluate(hangUp);
  return { heard, before, meanwhile, after, faults };
});
