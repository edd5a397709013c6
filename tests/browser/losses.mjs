// How long a call takes to connect when a datagram of its handshake is lost. Options: url,
// browser, cases: [{name, command (argv that arms the loss; none = no loss)}], after (argv run when
// the call is up; the JSON line it prints goes into the result).
// One page per case; its timeline tells the milliseconds from the click.

import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { openTalkPage, run } from './driver.mjs';
import { hangUp } from './measure.mjs';

const LIMIT_MS = 8_000;

function tell([file, ...args]) {
  const lines = execFileSync(file, args, { timeout: 10_000, encoding: 'utf8' }).trim();
  return JSON.parse(lines.split('\n').at(-1) || 'null');
}

// Starts a call and waits until its data channel is open: then both sides are done with DTLS.
async function connect(limit) {
  const end = performance.now() + limit;
  await window.ferryline.start();
  while (!window.ferryline.timeline.channel && performance.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const { click, ...phases } = window.ferryline.timeline;
  return Object.fromEntries(
    Object.entries(phases).map(([phase, at]) => [phase, at === null ? null : at - click]),
  );
}

await run(async (browser, options) => {
  const cases = [];
  for (const { name, command } of options.cases) {
    const { page, faults } = await openTalkPage(browser, options);
    if (command) tell(command);
    const timeline = await page.evaluate(connect, LIMIT_MS);
    const after = options.after ? tell(options.after) : null;
    await page.evaluate(hangUp);
    cases.push({ name, timeline, after, faults });
    await page.close();
    await sleep(200);
  }
  return { cases };
});
