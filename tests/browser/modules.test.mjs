// The talk page's other pure parts: counts to points, faults to words.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const part = (name) => import(new URL(`../../signaling/web/${name}.js`, import.meta.url));
const { History, SECONDS, summary } = await part('history');
const explain = await part('explain');

const figures = (n, values = {}) => ({
  rtt_ms: 20,
  jitter_ms: 1,
  lost: { up: 0, down: n },
  packets: { up: 50 * n, down: 49 * n },
  samples: 48_000 * n,
  concealed_samples: 480 * n,
  heard: { energy: 0.01 * n, seconds: n },
  said: null,
  ...values,
});

test('counts become shares of the last second, energies levels', () => {
  const history = new History();
  for (let n = 1; n <= 3; n += 1) history.push(figures(n));
  const { loss_down, loss_up, concealed, heard, said } = history.points.at(-1);
  assert.deepEqual(
    { loss_down, loss_up, concealed, said },
    { loss_down: 2, loss_up: 0, concealed: 1, said: null },
  );
  assert.ok(Math.abs(heard + 20) < 0.01); // dB
});

test('a call begun anew counts from 0, and two minutes are kept', () => {
  const history = new History();
  for (let n = 1; n <= SECONDS + 5; n += 1) history.push(figures(n));
  history.push(figures(0, { rtt_ms: null }));
  assert.equal(history.points.length, SECONDS);
  assert.equal(history.points.at(-1).loss_down, null);
  assert.deepEqual(summary(history.points, 'rtt'), { now: null, least: 20, most: 20 });
  assert.equal(summary(history.points, 'said'), null);
});

test('each fault says what to do', () => {
  for (const name of ['NotAllowedError', 'NotFoundError', 'NotReadableError', 'AbortError']) {
    const { text, steps } = explain.microphone({ name, message: 'why' });
    assert.match(text, /microphone/i);
    assert.ok(steps.length > 0);
  }
  for (const status of [0, 401, 403, 429, 502, 503]) {
    assert.ok(explain.call({ status, message: 'why' }).steps.length > 0, String(status));
  }
  assert.deepEqual(
    explain.call({ status: 503, message: 'full', retryAfter: 7 }).steps.at(-1),
    'Press Talk again in 7 s.',
  );
});
