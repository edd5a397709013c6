// A call from the talk page's own buttons, by keyboard alone, judged at each stage. Options: url,
// browser, rules (whether axe-core judges, too). The backend has to be echo: what is said comes back, and what is not said does not.

import { setTimeout as sleep } from 'node:timers/promises';
import { openTalkPage, run } from './driver.mjs';
import { overflow, tabOrder, tabTo, unfit, watchPolicy } from './judge_page.mjs';
import { untilHeard } from './measure.mjs';

const LIMIT_MS = 10_000;
const NARROW = 320;
const LAST = 'events-title'; // to be reached by the Tab key, before the events themselves

// Energy that comes back while the fake microphone beeps at least once.
async function power() {
  const energy = async () => (await window.ferryline.stats()).audio_energy;
  const before = await energy();
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  return (await energy()) - before;
}

function shown() {
  const text = (id) => document.getElementById(id).textContent;
  return {
    state: document.body.dataset.state,
    status: text('status'),
    label: text('talk-label'),
    relay: text('way-relay'),
    ingress: text('ingress'),
    steering: text('steering'),
    phases: [...document.querySelectorAll('#phases b')].map((took) => took.textContent),
    plots: [...document.querySelectorAll('#plots svg')].map((plot) => plot.ariaLabel),
    types: [...document.querySelectorAll('#events-list code')].map((code) => code.textContent),
  };
}

await run(async (browser, options) => {
  const { page, faults, complaints } = await openTalkPage(browser, options);
  const violations = await watchPolicy(page);
  const state = (wanted) =>
    page.waitForFunction(
      (state) => document.body.dataset.state === state,
      { timeout: LIMIT_MS },
      wanted,
    );
  const judge = async () => (options.rules ? unfit(page) : []);
  const idle = { unfit: await judge(), tabs: await tabOrder(page, LAST) };

  await tabTo(page, 'talk');
  await page.keyboard.press('Enter');
  await state('connected');
  const heard = await page.evaluate(untilHeard, LIMIT_MS);
  await page.waitForFunction(
    () =>
      document.getElementById('way').dataset.path === 'kernel' &&
      document.querySelector('#plots path[d*="L"]'),
    { timeout: LIMIT_MS },
  );
  const call = {
    ...(await page.evaluate(shown)),
    unfit: await judge(),
    tabs: await tabOrder(page, LAST),
  };

  await tabTo(page, 'mute');
  await page.keyboard.press(' ');
  await sleep(500);
  const muted = await page.evaluate(power);
  const label = (await page.evaluate(shown)).label;
  await page.keyboard.press(' ');
  await sleep(500);
  const spoken = await page.evaluate(power);

  const narrow = { overflow: await overflow(page, NARROW), unfit: await judge() };
  const id = await page.evaluate(() => window.ferryline.callId);
  await tabTo(page, 'hangup');
  await page.keyboard.press('Enter');
  await state('idle');
  await sleep(500);
  const end = {
    ...(await page.evaluate(shown)),
    focus: await page.evaluate(() => document.activeElement.id),
    far: await page.evaluate(
      async (id) => (await (await fetch(`/v1/realtime/calls/${id}`)).json()).reason,
      id,
    ),
    overflow: await overflow(page, NARROW),
  };
  return {
    heard,
    idle,
    call,
    energy: { muted, spoken },
    label,
    narrow,
    end,
    faults,
    complaints,
    violations: await violations(),
  };
});
