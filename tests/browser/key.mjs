// The talk page at a server that asks for a key. Options: url, browser, key, wrong.

import { openTalkPage, run } from './driver.mjs';
import { unfit } from './judge_page.mjs';
import { untilHeard } from './measure.mjs';

const LIMIT_MS = 8_000;

await run(async (browser, options) => {
  const { page, faults } = await openTalkPage(browser, options);
  const urls = [];
  page.on('request', (request) => urls.push(request.url()));
  // What the page says when it asks for a key, other than `before`.
  const asked = async (before) => {
    const says = await page.waitForFunction(
      (before) => {
        const says = document.querySelector('#notice p')?.textContent;
        return !document.getElementById('key-form').hidden && says !== before && says;
      },
      { timeout: LIMIT_MS },
      before,
    );
    return says.jsonValue();
  };
  const enter = async (key) => {
    await page.keyboard.type(key); // the field has the focus
    await page.keyboard.press('Enter');
  };

  await page.evaluate(() => document.getElementById('talk').click());
  const missing = { notice: await asked(), unfit: await unfit(page) };
  await enter(options.wrong);
  const wrong = { notice: await asked(missing.notice) };
  await enter(options.key);
  await page.waitForFunction(() => window.ferryline.callId !== null, { timeout: LIMIT_MS });
  const heard = await page.evaluate(untilHeard, LIMIT_MS);
  const id = await page.evaluate(() => window.ferryline.callId);
  await page.evaluate(() => window.ferryline.stop());
  await page.waitForFunction(
    async (id) => (await (await fetch(`/v1/realtime/calls/${id}`)).json()).reason !== null,
    { timeout: LIMIT_MS },
    id,
  );
  const kept = await page.evaluate(() => ({
    for_good: Object.values({ ...localStorage }),
    for_the_tab: Object.values({ ...sessionStorage }),
    address: location.href,
  }));
  const reason = await page.evaluate(
    async (id) => (await (await fetch(`/v1/realtime/calls/${id}`)).json()).reason,
    id,
  );
  return { missing, wrong, heard, kept, urls, reason, faults };
});
