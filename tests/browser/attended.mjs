// A call that goes on until it is told otherwise. Options: url, browser, recovers (false: without
// the page's own ICE restarts). Prints a line when it is heard, then one for each line of stdin,
// {"op": "report" | "mute" | "unmute"}: what getStats says then. Ends with stdin.

import readline from 'node:readline';
import { openTalkPage, run } from './driver.mjs';
import { hangUp, mute, summary, untilHeard, withoutRecovery } from './measure.mjs';

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

// Takes the microphone's track away from its sender, for `unmute` to give it back.
function keepTrack() {
  const [sender] = window.ferryline.pc.getSenders().filter((one) => one.track?.kind === 'audio');
  window.kept = sender && { sender, track: sender.track };
}

const unmute = () => window.kept?.sender.replaceTrack(window.kept.track);

async function source() {
  const reports = [...(await window.ferryline.pc.getStats()).values()];
  return reports.find((s) => s.type === 'outbound-rtp' && s.kind === 'audio')?.ssrc ?? null;
}

await run(async (browser, options) => {
  const { page, faults } = await openTalkPage(browser, options);
  if (options.recovers === false) await page.evaluate(withoutRecovery);
  await page.evaluate(() => window.ferryline.start());
  if (!(await page.evaluate(untilHeard, 30_000))) throw new Error('heard nothing');
  const report = async () => ({
    ssrc: await page.evaluate(source),
    restarts: await page.evaluate(async () => (await window.ferryline.stats?.())?.restarts ?? 0),
    ...(await page.evaluate(summary)),
  });
  say(await report());
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { op } = JSON.parse(line);
    if (op === 'mute') {
      await page.evaluate(keepTrack);
      await page.evaluate(mute);
    } else if (op === 'unmute') await page.evaluate(unmute);
    say(await report());
  }
  await page.evaluate(hangUp);
  return { faults };
});
