// The client's address changes during a call. Options: url, browser, moves (how many), command
// (argv that makes one change), after (argv run `settle_s` later; the JSON line it prints goes into
// the result), muted (the microphone sends nothing), control_s (watched before the first change).
// A change comes at a random moment of the client's check interval.

import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openTalkPage, run } from './driver.mjs';
import {
  hangUp,
  mute,
  startWatch,
  stopWatch,
  summary,
  untilHeard,
  withoutRecovery,
} from './measure.mjs';

const SPREAD_MS = 2_500; // Chromium's check interval

async function command([file, ...args]) {
  const { stdout } = await promisify(execFile)(file, args, { timeout: 10_000 });
  return JSON.parse(stdout.trim().split('\n').at(-1) || 'null');
}

await run(async (browser, options) => {
  const { page, faults } = await openTalkPage(browser, options);
  if (options.muted) await page.evaluate(withoutRecovery);
  await page.evaluate(() => window.ferryline.start());
  const heard = await page.evaluate(untilHeard, 15_000);
  if (options.muted) await page.evaluate(mute);
  await page.evaluate(startWatch);
  await sleep((options.control_s ?? 3) * 1_000);
  const control_gap_ms = await page.evaluate(stopWatch);
  const moves = [];
  for (let move = 0; move < options.moves; move += 1) {
    await sleep(Math.random() * (options.spread_ms ?? SPREAD_MS));
    await page.evaluate(startWatch);
    await command(options.command);
    await sleep((options.settle_s ?? 4) * 1_000);
    const gap_ms = await page.evaluate(stopWatch);
    moves.push({ gap_ms, after: options.after ? await command(options.after) : null });
  }
  const end = await page.evaluate(summary);
  await page.evaluate(hangUp);
  return { heard, control_gap_ms, moves, end, faults };
});
