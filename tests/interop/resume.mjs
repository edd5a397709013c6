// A client's call loses its transceiver, and the client carries it on in a call of its own making.
// Options: browser, page (a bundle of `pages`), files (directory of the bundles), url and key (of the
// services), words (what is written; the backend answers each in writing), owners (pid of each
// transceiver by its address: the one that has the call is killed), after (what is written then).

import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '../browser/driver.mjs';
import { serve } from './serve.mjs';

const LIMIT_MS = 20_000;

await run(async (browser, options) => {
  const server = await serve(options.files);
  const page = await browser.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(String(error.message ?? error)));
  const foreign = `http://localhost:${server.address().port}/${options.page}.html`;
  await page.goto(foreign, { timeout: LIMIT_MS });
  const connect = (resume) =>
    page.evaluate((given) => window.client.connect(given), {
      url: options.url,
      key: options.key,
      resume,
    });
  const history = () => page.evaluate(() => window.client.history());
  const long = async (length) => {
    const enough = (length) => window.client.history().length >= length;
    await page.waitForFunction(enough, { timeout: LIMIT_MS, polling: 50 }, length).catch(async () => {
      const [kept, errors] = [await history(), await page.evaluate(() => window.client.errors())];
      throw new Error(`no ${length} items: ${JSON.stringify({ kept, errors, faults })}`);
    });
  };
  const say = async (text) => {
    const before = (await history()).length;
    await page.evaluate((text) => window.client.say(text), text);
    await long(before + 2);
  };

  const first = await connect(null);
  for (const text of options.words) await say(text);
  const before = await history();
  const path = await fetch(`${options.url}/v1/realtime/calls/${first}/path`);
  const { endpoint } = await path.json();
  await sleep(2_000); // items are stored behind the call
  process.kill(options.owners[endpoint], 'SIGKILL');
  await page.evaluate(() => window.client.close());

  const second = await connect(first);
  await long(before.length);
  const after = await history();
  await say(options.after);
  const end = await history();
  const errors = await page.evaluate(() => window.client.errors());
  await page.evaluate(() => window.client.close());
  server.close();
  return { calls: [first, second], before, after, end, errors, faults };
});
