// Any client in a browser: connects, is silent, talks, hears the reply out, cuts others short,
// restarts ICE where the client can, hangs up. Options: browser, page (a bundle of `pages`, or a
// URL), files (directory of the bundles), url, key and api_key (of the services), audio (WAV to say),
// record (WAV of what came back), interrupts (ways: "speech", "call"), restarts, down (whether
// anything comes back).
//
// Pages come from another origin than the services, as a site's own pages do. What a client can do
// stands in its page as `window.client`; what is seen of it, in `pages/spy.js`.

import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '../browser/driver.mjs';
import { writeWav } from '../browser/measure.mjs';
import { serve } from './serve.mjs';

const LOUD = 0.01; // RMS of full scale
const LIMIT_MS = 20_000; // of any step
const SILENT_S = 1.5;
const TURN_S = 2.6;
const INTERRUPTION_S = 1.2;
const HEARD_S = 0.5; // of a reply, before it is cut
const HUSH_S = 1.2; // of silence: the reply is over
const CUT_S = 1.8; // that a cut reply is listened to
const SPY = fs.readFileSync(new URL('pages/spy.js', import.meta.url), 'utf8');

await run(async (browser, options) => {
  const server = await serve(options.files);
  const page = await browser.newPage();
  // The recorder is code of ours in a page of theirs; Firefox has none.
  if (options.record) await page.setBypassCSP(true);
  const faults = [];
  const complaints = [];
  page.on('pageerror', (error) => faults.push(String(error.message ?? error)));
  page.on('console', (message) => {
    if (['error', 'warn'].includes(message.type())) complaints.push(message.text().slice(0, 300));
  });
  await page.evaluateOnNewDocument(SPY);
  if (options.page.includes('/')) {
    // Our own page keeps the key that it was given.
    const keep = (key) => sessionStorage.setItem('ferryline.key', key);
    await page.evaluateOnNewDocument(keep, options.api_key);
    await page.goto(options.page, { timeout: LIMIT_MS });
  } else {
    const foreign = `http://localhost:${server.address().port}/${options.page}.html`;
    await page.goto(foreign, { timeout: LIMIT_MS });
  }
  await page.waitForFunction(() => window.client ?? window.ferryline, { timeout: LIMIT_MS });
  await page.evaluate(() => {
    const { ferryline } = window; // our own page
    window.client ??= {
      connect: () => ferryline.start(),
      restart: () => ferryline.restart(),
      hangUp: () => ferryline.stop(),
    };
  });

  const marks = {};
  const mark = async (name) => {
    marks[name] = await page.evaluate(() => window.spy.now());
    return marks[name];
  };
  const until = (what, test, ...given) =>
    page.waitForFunction(test, { timeout: LIMIT_MS, polling: 50 }, ...given).catch(async () => {
      const { asked, messages, levels } = await page.evaluate(
        ({ http: asked, levels, messages } = window.spy) => ({ asked, levels, messages }),
      );
      const own = await page.evaluate(() => window.client.own?.());
      const told = messages.slice(-3).map(([, text]) => text);
      const seen = { levels: levels.slice(-8), faults, complaints, asked, own, told };
      throw new Error(`${what}; ${JSON.stringify(seen)}`);
    });
  const say = async (seconds) => {
    const at = await page.evaluate(() => window.spy.speak(true));
    await sleep(seconds * 1_000);
    await page.evaluate(() => window.spy.speak(false));
    return at;
  };
  const replied = (since, to) => {
    if (!options.down) return sleep(1_000);
    return until(`no reply ${to}`, (at, level) => window.spy.loud(at, level, 3), since, LOUD);
  };
  const hushed = () => {
    if (!options.down) return sleep(1_000);
    return until('no end of the reply', (...given) => window.spy.quiet(...given), HUSH_S, LOUD);
  };

  const { url, key, api_key } = options;
  await page.evaluate((given) => window.client.connect(given), { url, key, api_key });
  await until('not connected', () => window.spy.peer()?.connectionState === 'connected');
  await mark('silent');
  await sleep(SILENT_S * 1_000);
  marks.said = await say(TURN_S);
  await replied(marks.said, 'to the first turn');
  await mark('replied');
  await hushed();
  await mark('hushed');

  const cuts = [];
  for (const way of options.interrupts) {
    const said = await say(INTERRUPTION_S);
    await replied(said + 0.5, 'to cut');
    await sleep(HEARD_S * 1_000);
    const at = await page.evaluate(() => window.spy.now());
    if (way === 'speech') await Promise.all([say(INTERRUPTION_S), sleep(CUT_S * 1_000)]);
    else {
      await page.evaluate(() => window.client.interrupt());
      await sleep(CUT_S * 1_000);
    }
    cuts.push({ way, at, until: await page.evaluate(() => window.spy.now()) });
    if (way === 'speech') await replied(cuts.at(-1).until, 'to the words that cut'); // words that cut are answered, too
    await hushed();
  }

  let restart = null;
  if (options.restarts) {
    const ufrag = () => /^a=ice-ufrag:(\S+)/m.exec(window.spy.peer().remoteDescription.sdp)[1];
    const before = await page.evaluate(ufrag);
    await page.evaluate(() => window.client.restart());
    await until('no path after the restart', () =>
      ['connected', 'completed'].includes(window.spy.peer().iceConnectionState),
    );
    await sleep(SILENT_S * 1_000);
    const said = await say(INTERRUPTION_S);
    await replied(said, 'after the restart');
    await hushed();
    restart = { before, after: await page.evaluate(ufrag), said, until: await mark('restarted') };
  }

  const own = await page.evaluate(() => window.client.own?.() ?? {});
  const seen = await page.evaluate(() => {
    const { calls, http: asked, levels, messages, recordedFrom } = window.spy;
    return { calls, http: asked, levels, messages, recorded_from: recordedFrom };
  });
  if (options.record) {
    const pcm = Buffer.from(await page.evaluate(() => window.spy.recording()), 'base64');
    writeWav(options.record, pcm, { channels: 1 });
  }
  await page.evaluate(() => window.client.hangUp());
  await sleep(700); // until the news is there
  await page.close();
  server.close();
  return { marks, cuts, restart, own, ...seen, faults, complaints };
});
