// Starts one headless browser with a fresh profile, hands its page to a scenario, prints the
// scenario's result as one JSON line and removes everything again, in bounded time.
// What a scenario measures is none of its business.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import puppeteer from 'puppeteer-core';

const CLOSE_MS = 5_000; // for a browser to end by itself before it is killed

const CHROMIUM_FLAGS = [
  '--no-sandbox', // we run as root, in a network namespace
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--autoplay-policy=no-user-gesture-required',
];
// Whoever asks for a microphone gets one that beeps; gets none; is refused it.
const MICROPHONES = {
  fake: ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'],
  none: ['--use-fake-ui-for-media-stream'],
  refused: ['--use-fake-device-for-media-stream'],
};

const FIREFOX_PREFS = {
  'media.navigator.streams.fake': true,
  'media.navigator.permission.disabled': true,
  'media.devices.insecure.enabled': true,
  'media.getusermedia.insecure.enabled': true,
  'media.autoplay.default': 0,
  'media.autoplay.blocking_policy': 0,
  'media.gmp-manager.updateEnabled': false,
  'app.update.enabled': false,
  'datareporting.healthreport.uploadEnabled': false,
  'dom.security.https_first': false,
  'extensions.systemAddon.update.enabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'services.settings.server': 'http://127.0.0.1:1/',
  'toolkit.telemetry.enabled': false,
};

function chromium({ url, audio, loopback, microphone = 'fake', insecure }, home) {
  const args = [...CHROMIUM_FLAGS, ...MICROPHONES[microphone]];
  if (!insecure) args.push(`--unsafely-treat-insecure-origin-as-secure=${new URL(url).origin}`);
  if (audio) args.push(`--use-file-for-fake-audio-capture=${audio}%noloop`);
  if (loopback) args.push('--allow-loopback-in-peer-connection');
  const executablePath = '/usr/bin/chromium';
  return { browser: 'chrome', executablePath, userDataDir: `${home}/profile`, args, pipe: true };
}

function firefox({ loopback }, home) {
  const extraPrefsFirefox = { ...FIREFOX_PREFS, 'media.peerconnection.ice.loopback': !!loopback };
  fs.mkdirSync(`${home}/profile`);
  return {
    browser: 'firefox',
    executablePath: '/usr/bin/firefox-esr',
    userDataDir: `${home}/profile`,
    extraPrefsFirefox,
  };
}

// Launches options.browser ("chromium" or "firefox"); `close` ends it and removes its home. Chromium
// takes `microphone` as above, and with `insecure` an http page for what it is.
async function launch(options) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'ferryline-browser-'));
  const remove = () => fs.rmSync(home, { recursive: true, force: true, maxRetries: 10 });
  try {
    const kind = { chromium, firefox }[options.browser];
    if (!kind) throw new Error(`browser ${options.browser}: want "chromium" or "firefox"`);
    const browser = await puppeteer.launch({
      ...kind(options, home),
      headless: true,
      timeout: 30_000,
      protocolTimeout: 60_000,
      env: { ...process.env, HOME: home, TMPDIR: home },
    });
    const close = async () => {
      await Promise.race([browser.close().catch(() => {}), sleep(CLOSE_MS)]);
      browser.process()?.kill('SIGKILL');
      remove();
    };
    return { browser, close };
  } catch (error) {
    remove();
    throw error;
  }
}

// Opens the talk page with its microphone processing off and waits until it can be driven. `faults`
// are errors of its scripts, `complaints` what the browser writes into its console as an error.
export async function openTalkPage(browser, { url, record }) {
  const page = await browser.newPage();
  if (record) await page.setBypassCSP(true); // the recorder is code of ours in a page of theirs
  await page.setViewport({ width: 1100, height: 900 });
  const [faults, complaints] = [[], []];
  page.on('pageerror', (error) => faults.push(String(error.message ?? error)));
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  await page.goto(`${url}?raw=1`, { timeout: 20_000 });
  await page.waitForFunction(() => window.ferryline !== undefined, { timeout: 10_000 });
  return { page, faults, complaints };
}

// Runs `scenario(browser, options)` with the options of argv[2] (JSON) within options.limit_s
// seconds. Prints its result, or {"error"} with exit status 1. A signal cleans up just the same.
export async function run(scenario) {
  const options = JSON.parse(process.argv[2] ?? '{}');
  const limit = (options.limit_s ?? 90) * 1_000;
  const started = performance.now();
  let close = async () => {};
  const stopped = new Promise((_, reject) => {
    for (const signal of ['SIGTERM', 'SIGINT']) {
      process.once(signal, () => reject(new Error(`stopped by ${signal}`)));
    }
    setTimeout(() => reject(new Error(`not done after ${limit / 1_000} s`)), limit).unref();
  });
  const work = async () => {
    const launched = await launch(options);
    close = launched.close;
    const launch_ms = Math.round(performance.now() - started);
    const version = await launched.browser.version();
    return { browser: version, launch_ms, ...(await scenario(launched.browser, options)) };
  };
  let result;
  try {
    result = await Promise.race([work(), stopped]);
  } catch (error) {
    result = { error: String(error.message ?? error).split('\n')[0] }; // without the page's stack
  }
  await close();
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(result.error ? 1 : 0));
}
