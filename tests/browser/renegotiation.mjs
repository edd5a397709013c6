// Later offers of a call that restart no ICE: one with a video section, and one after our answer
// rejected that. Options: url, browser, settle_s.

import { setTimeout as sleep } from 'node:timers/promises';
import { openTalkPage, run } from './driver.mjs';
import { farSide, hangUp, summary, untilHeard } from './measure.mjs';

// Inside the page.
async function negotiate(withVideo) {
  const { pc, callId } = window.ferryline;
  if (withVideo) pc.addTransceiver('video');
  await pc.setLocalDescription();
  const response = await fetch(`/v1/realtime/calls/${callId}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/sdp' },
    body: pc.localDescription.sdp,
  });
  const sdp = await response.text();
  await pc.setRemoteDescription({ type: 'answer', sdp });
  return response.status;
}

function answered() {
  const { sdp } = window.ferryline.pc.remoteDescription;
  const all = (pattern) => [...sdp.matchAll(pattern)].map((match) => match[1]);
  return { sections: all(/^m=(\w+ \d+)/gm), ufrags: [...new Set(all(/^a=ice-ufrag:(\S+)/gm))] };
}

await run(async (browser, options) => {
  const { page, faults } = await openTalkPage(browser, options);
  const look = async () => ({
    answer: await page.evaluate(answered),
    far: await page.evaluate(farSide),
    ...(await page.evaluate(summary)),
  });
  await page.evaluate(() => window.ferryline.start());
  const heard = await page.evaluate(untilHeard, 15_000);
  const settle = () => sleep((options.settle_s ?? 2) * 1_000);
  await settle();
  const looks = [await look()];
  const statuses = [];
  for (const withVideo of [true, false]) {
    statuses.push(await page.evaluate(negotiate, withVideo));
    await settle();
    looks.push(await look());
  }
  await page.evaluate(hangUp);
  return { heard, statuses, looks, faults };
});
