// The other side of a call speaks, complains and ends it. Options: url, browser.
// It is ended at the server behind the page's back, as a model, an operator or a deadline does.

import { setTimeout as sleep } from 'node:timers/promises';
import { openTalkPage, run } from './driver.mjs';
import { untilHeard } from './measure.mjs';

const COMPLAINT = '<b>bold</b>';
const LIMIT_MS = 8_000;

// Keeps the channel of the next call in `window.channel`.
function keepChannel() {
  const { prototype } = RTCPeerConnection;
  const create = prototype.createDataChannel;
  prototype.createDataChannel = function (...args) {
    return (window.channel = create.apply(this, args));
  };
}

function say(type) {
  const data = JSON.stringify({ type, response_id: 'resp_1' });
  window.channel.dispatchEvent(new MessageEvent('message', { data }));
  const text = (id) => document.getElementById(id).textContent;
  return { status: text('status'), label: text('talk-label') };
}

await run(async (browser, options) => {
  const { page, faults } = await openTalkPage(browser, options);
  const shows = (test) => page.waitForFunction(test, { timeout: LIMIT_MS });
  await page.evaluate(keepChannel);
  await page.evaluate(() => window.ferryline.start());
  const heard = await page.evaluate(untilHeard, 15_000);
  await shows(() => window.channel.readyState === 'open');

  const speaking = await page.evaluate(say, 'output_audio_buffer.started');
  const listening = await page.evaluate(say, 'output_audio_buffer.stopped');

  await page.evaluate((type) => window.channel.send(JSON.stringify({ type })), COMPLAINT);
  await shows(() => !document.getElementById('notice').hidden);
  const notice = await page.evaluate(() => {
    const box = document.getElementById('notice');
    return { text: box.textContent, elements: box.childElementCount };
  });

  const calls = [];
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith('/calls')) calls.push(request.url());
  });
  await page.evaluate(() =>
    fetch(`/v1/realtime/calls/${window.ferryline.callId}`, { method: 'DELETE' }),
  );
  await shows(() => document.body.dataset.state !== 'connected');
  await sleep(3_000);
  const end = await page.evaluate(() => ({
    state: document.body.dataset.state,
    status: document.getElementById('status').textContent,
    call_id: window.ferryline.callId,
  }));
  return { heard, speaking, listening, notice, calls, end, faults };
});
