// What the talk page shows of a conversation, and what it lets a person do in it. Options: url,
// browser. The backend has to be parrot, which answers in writing what is written. What only a
// model does, being interrupted in mid-sentence, is told on the channel in its place.

import { openTalkPage, run } from './driver.mjs';
import { untilHeard } from './measure.mjs';

const LIMIT_MS = 10_000;
const WRITTEN = 'Is <b>anybody</b> there?';
const MANY = 700;

// Keeps the channel of the next call in `window.channel`.
function keepChannel() {
  const { prototype } = RTCPeerConnection;
  const create = prototype.createDataChannel;
  prototype.createDataChannel = function (...args) {
    return (window.channel = create.apply(this, args));
  };
}

function tell(...events) {
  for (const event of events) {
    window.channel.dispatchEvent(new MessageEvent('message', { data: JSON.stringify(event) }));
  }
}

function turns() {
  return [...document.querySelectorAll('#turns li')].map((turn) => {
    const text = (part) => turn.querySelector(part)?.textContent ?? null;
    return { who: text('b'), heard: text('p span'), unheard: text('s'), note: text('small') };
  });
}

function events() {
  const list = [...document.querySelectorAll('#events-list details')];
  return list.map(({ dataset: { type, direction } }) => ({ type, direction }));
}

const INTERRUPTED = [
  {
    type: 'response.output_audio_transcript.delta',
    response_id: 'r',
    item_id: 'i',
    delta: 'One two ',
  },
  {
    type: 'response.output_audio_transcript.delta',
    response_id: 'r',
    item_id: 'i',
    delta: 'three four',
  },
  { type: 'conversation.item.truncated', item_id: 'i', content_index: 0, audio_end_ms: 1234 },
  {
    type: 'conversation.item.retrieved',
    item: { id: 'i', type: 'message', role: 'assistant', content: [{ transcript: 'One two' }] },
  },
];

await run(async (browser, options) => {
  const { page, faults } = await openTalkPage(browser, options);
  const until = (test, ...args) => page.waitForFunction(test, { timeout: LIMIT_MS }, ...args);
  await page.evaluate(keepChannel);
  await page.evaluate(() => window.ferryline.start());
  const heard = await page.evaluate(untilHeard, LIMIT_MS);

  await until(() => !document.getElementById('words').disabled);
  await page.type('#words', WRITTEN);
  await page.keyboard.press('Enter');
  await until((text) => {
    const answers = [...document.querySelectorAll('[data-who="agent"] p span')];
    return answers.some((answer) => answer.textContent === text);
  }, WRITTEN);
  await until(() => document.getElementById('said').textContent.startsWith('Answer'));
  const written = await page.evaluate(turns);
  const said = await page.evaluate(() => document.getElementById('said').textContent);

  await until(() => document.querySelector('#events-list [data-type="response.done"]'));
  const both = await page.evaluate(events);
  await page.evaluate(() =>
    document.querySelector('#events-list [data-type="response.done"] summary').click(),
  );
  await until(() => document.querySelector('#events-list pre'));
  const opened = await page.evaluate(() =>
    JSON.parse(document.querySelector('#events-list pre').textContent),
  );
  await page.type('#events-filter', 'output_text');
  const filtered = await page.evaluate(events);
  await page.click('#events-pause');
  await page.evaluate(tell, {
    type: 'response.output_text.delta',
    response_id: 'r',
    item_id: 'j',
    delta: 'x',
  });
  await until(() => document.getElementById('events-count').textContent.includes('held back'));
  const paused = await page.evaluate(events);
  await page.click('#events-pause');
  await until(
    (before) => document.querySelectorAll('#events-list details').length > before,
    paused.length,
  );

  await page.evaluate(tell, ...INTERRUPTED);
  const interrupted = (await page.evaluate(turns)).find((turn) => turn.unheard);
  const complains = () => page.evaluate(() => !document.getElementById('notice').hidden);
  await page.evaluate(tell, {
    type: 'error',
    error: { message: 'unasked', event_id: 'page_retrieve' },
  });
  const complaints = [await complains()];
  await page.evaluate(tell, { type: 'error', error: { message: 'asked' } });
  complaints.push(await complains());

  await page.$eval('#events-filter', (field) => {
    field.value = '';
    field.dispatchEvent(new Event('input'));
  });
  await page.evaluate(tell, ...Array.from({ length: MANY }, (_, n) => ({ type: 'test', n })));
  await until(() => {
    const shown = [...document.querySelectorAll('#events-list [data-type="test"] .preview')];
    return shown.at(-1)?.textContent.includes('699');
  });
  const bounded = (await page.evaluate(events)).length;

  const [first, other] = await page.$$eval('#microphone option', (all) =>
    all.slice(1).map((o) => o.value),
  );
  const device = () =>
    page.evaluate(() => window.ferryline.pc.getSenders()[0].track.getSettings().deviceId);
  const devices = { first, other, before: await device() };
  await page.select('#microphone', other);
  await until(
    (id) => window.ferryline.pc.getSenders()[0].track.getSettings().deviceId === id,
    other,
  );
  const sending = () => page.evaluate(() => window.ferryline.pc.getSenders()[0].track.enabled);
  await page.click('#hold');
  const released = await sending();
  await page.focus('#talk');
  await page.keyboard.down(' ');
  const held = await sending();
  await page.keyboard.up(' ');
  const hold = { released, held, again: await sending() };
  await page.evaluate(() => window.ferryline.stop());

  const again = await browser.newPage();
  await again.goto(options.url);
  await again.waitForFunction(() => window.ferryline !== undefined);
  await again.evaluate(() => window.ferryline.start());
  devices.again = await again.evaluate(
    () => window.ferryline.pc.getSenders()[0].track.getSettings().deviceId,
  );
  const id = await again.evaluate(() => window.ferryline.callId);
  await again.goto('about:blank'); // nobody pressed anything
  const left = await page.evaluate(async (id) => {
    const end = performance.now() + 5_000;
    while (performance.now() < end) {
      const call = await (await fetch(`/v1/realtime/calls/${id}`)).json();
      if (call.reason) return call.reason;
    }
    return null;
  }, id);
  return {
    heard,
    written,
    said,
    both,
    opened,
    filtered,
    paused,
    interrupted,
    bounded,
    devices,
    complaints,
    hold,
    left,
    faults,
  };
});
