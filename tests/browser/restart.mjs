// ICE restarts during a call: new credentials on both sides, and nothing lost. Options: url,
// browser, restarts (how many), settle_s.

import { setTimeout as sleep } from 'node:timers/promises';
import { openTalkPage, run } from './driver.mjs';
import { farSide, hangUp, summary, untilHeard } from './measure.mjs';

function ufrags() {
  const { pc } = window.ferryline;
  const ufrag = (description) => description.sdp.match(/^a=ice-ufrag:(\S+)/m)[1];
  return { ours: ufrag(pc.localDescription), theirs: ufrag(pc.remoteDescription) };
}

await run(async (browser, options) => {
  const { page, faults } = await openTalkPage(browser, options);
  const look = async () => ({
    ufrags: await page.evaluate(ufrags),
    far: await page.evaluate(farSide),
    ...(await page.evaluate(summary)),
  });
  await page.evaluate(() => window.ferryline.start());
  const heard = await page.evaluate(untilHeard, 15_000);
  const settle = () => sleep((options.settle_s ?? 3) * 1_000);
  await settle();
  const looks = [await look()];
  for (let restart = 0; restart < (options.restarts ?? 2); restart += 1) {
    await page.evaluate(() => window.ferryline.restart());
    await settle();
    looks.push(await look());
  }
  await page.evaluate(hangUp);
  return { heard, looks, faults };
});
