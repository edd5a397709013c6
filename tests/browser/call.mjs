// One call of `seconds` s. Options: url, browser, seconds, audio (WAV to say), loopback,
// record (WAV to write: left what was said, right what came back; Chromium), screenshot (PNG).

import { setTimeout as sleep } from 'node:timers/promises';
import { openTalkPage, run } from './driver.mjs';
import {
  farSide,
  hangUp,
  mute,
  startRecording,
  summary,
  takeRecording,
  untilHeard,
  writeWav,
} from './measure.mjs';

const DRAIN_MS = 400; // for the packets on the way; the page mends a path that is silent for 1 s

await run(async (browser, options) => {
  const { page, faults } = await openTalkPage(browser, options);
  await page.evaluate(() => window.ferryline.start());
  const heard = await page.evaluate(untilHeard, 15_000);
  if (options.record) await page.evaluate(startRecording);
  await sleep(options.seconds * 1_000);
  if (options.screenshot) await page.screenshot({ path: options.screenshot });
  const talking = await page.evaluate(summary);
  await page.evaluate(mute);
  await sleep(DRAIN_MS);
  const drained = await page.evaluate(summary);
  const far = await page.evaluate(farSide);
  if (options.record) {
    writeWav(options.record, Buffer.from(await page.evaluate(takeRecording), 'base64'));
  }
  await page.evaluate(hangUp);
  return { heard, talking, drained, far, faults };
});
