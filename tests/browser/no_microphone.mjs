// What the talk page says where there is no microphone for it. Options: url, browser, insecure,
// microphone ("none": there is none; "refused": the person says no).

import { openTalkPage, run } from './driver.mjs';
import { unfit } from './judge_page.mjs';

await run(async (browser, options) => {
  const { page, faults } = await openTalkPage(browser, options);
  await page.evaluate(() => document.getElementById('talk').click());
  await page.waitForFunction(() => !document.getElementById('notice').hidden, { timeout: 8_000 });
  const shown = await page.evaluate(() => ({
    state: document.body.dataset.state,
    can_talk: !document.getElementById('talk').disabled,
    notice: document.querySelector('#notice p').textContent,
    steps: [...document.querySelectorAll('#notice li')].map((step) => step.textContent),
  }));
  return { ...shown, unfit: await unfit(page), faults };
});
