// A client with two interfaces: does the returned voice stay on one path? Options: url, browser,
// seconds, muted (the microphone sends nothing, so that only checks tell the paths apart). What the
// paths carried, and what the transceiver says, is told at the beginning and at the end.

import { setTimeout as sleep } from 'node:timers/promises';
import { openTalkPage, run } from './driver.mjs';
import { farSide, hangUp, mute, summary, untilHeard, withoutRecovery } from './measure.mjs';

// Every candidate pair that was used, by local candidate.
function paths() {
  return window.ferryline.pc.getStats().then((report) => {
    const selected = [...report.values()].find((s) => s.type === 'transport')
      ?.selectedCandidatePairId;
    return [...report.values()]
      .filter((s) => s.type === 'candidate-pair')
      .map((pair) => ({
        local: `${report.get(pair.localCandidateId)?.address}`,
        selected: pair.id === selected,
        nominated: pair.nominated,
        state: pair.state,
        received: pair.packetsReceived ?? 0,
        bytes_received: pair.bytesReceived ?? 0,
        checks_sent: pair.requestsSent ?? 0,
      }));
  });
}

await run(async (browser, options) => {
  const { page, faults } = await openTalkPage(browser, options);
  if (options.muted) await page.evaluate(withoutRecovery);
  await page.evaluate(() => window.ferryline.start());
  const heard = await page.evaluate(untilHeard, 15_000);
  await sleep(4_000); // both paths are checked and one is nominated by then
  if (options.muted) await page.evaluate(mute);
  const look = async () => ({
    paths: await page.evaluate(paths),
    far: await page.evaluate(farSide),
  });
  const before = await look();
  await sleep(options.seconds * 1_000);
  const after = await look();
  const end = await page.evaluate(summary);
  await page.evaluate(hangUp);
  return { heard, before, after, end, faults };
});
