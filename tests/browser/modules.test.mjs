// The talk page's pure parts, run by Node's own test runner: events to turns, counts to points,
// faults to words, lost paths to steps.

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';

const part = (name) => import(new URL(`../../signaling/web/${name}.js`, import.meta.url));
const { Transcript } = await part('transcript');
const { History, SECONDS, summary } = await part('history');
const explain = await part('explain');
const { recover } = await part('recovery');
const { watchForSilence } = await part('silence');

const message = (id, role, ...content) => ({ id, type: 'message', role, content });
const turn = (transcript, id) => transcript.turns.find((one) => one.id === id);

test('a spoken turn is heard, awaited, written down', () => {
  const transcript = new Transcript();
  const about = { item_id: 'u' };
  transcript.hear({ type: 'input_audio_buffer.speech_started', ...about });
  assert.equal(turn(transcript, 'u').state, 'speaking');
  transcript.hear({ type: 'input_audio_buffer.speech_stopped', ...about });
  transcript.hear({
    type: 'conversation.item.added',
    item: message('u', 'user', { type: 'input_audio', transcript: null }),
  });
  assert.deepEqual(
    { ...turn(transcript, 'u') },
    { id: 'u', who: 'user', text: '', heard: null, state: 'writing', note: '' },
  );
  for (const delta of ['good ', 'day']) {
    transcript.hear({ type: 'conversation.item.input_audio_transcription.delta', ...about, delta });
  }
  transcript.hear({
    type: 'conversation.item.input_audio_transcription.completed',
    ...about,
    transcript: 'Good day',
  });
  assert.equal(turn(transcript, 'u').text, 'Good day');
  assert.equal(turn(transcript, 'u').state, 'done');
});

test('an interrupted reply keeps what was heard of it, whatever still comes', () => {
  const transcript = new Transcript();
  const about = { item_id: 'a', response_id: 'r' };
  transcript.hear({
    type: 'response.output_item.added',
    response_id: 'r',
    item: message('a', 'assistant'),
  });
  transcript.hear({
    type: 'response.output_audio_transcript.delta',
    ...about,
    delta: 'One two three',
  });
  transcript.hear({ type: 'conversation.item.truncated', item_id: 'a', audio_end_ms: 900 });
  transcript.hear({ type: 'response.output_audio_transcript.delta', ...about, delta: ' four' });
  transcript.hear({
    type: 'conversation.item.retrieved',
    item: message('a', 'assistant', { transcript: 'One' }),
  });
  transcript.hear({
    type: 'response.output_audio_transcript.done',
    ...about,
    transcript: 'One two three four',
  });
  const [ended] = transcript.hear({
    type: 'response.done',
    response: { id: 'r', status: 'cancelled' },
  });
  assert.equal(ended.heard, 'One');
  assert.equal(ended.text, 'One two three');
  assert.equal(ended.note, 'interrupted after 0.9 s');
});

test('what fails or is left out says so; tools are shown; the rest is ignored', () => {
  const transcript = new Transcript();
  const failed = {
    type: 'conversation.item.input_audio_transcription.failed',
    item_id: 'u',
    error: { message: 'no recogniser' },
  };
  assert.deepEqual(transcript.hear(failed), []); // of a turn that nobody announced
  transcript.hear({ type: 'input_audio_buffer.speech_started', item_id: 'u' });
  assert.equal(transcript.hear(failed)[0].note, 'no recogniser');
  transcript.hear({
    type: 'response.output_text.delta',
    item_id: 'a',
    response_id: 'r',
    delta: 'so',
  });
  const error = { message: 'overloaded' };
  const response = { id: 'r', status: 'failed', status_details: { error } };
  assert.equal(transcript.hear({ type: 'response.done', response })[0].note, 'overloaded');
  const call = { type: 'function_call', id: 'f', name: 'weather', arguments: '{"in":"Oslo"}' };
  assert.equal(
    transcript.hear({ type: 'conversation.item.added', item: call })[0].text,
    'weather({"in":"Oslo"})',
  );
  for (const event of [
    { type: 'x' },
    { type: 'conversation.item.added' },
    { type: 'response.done' },
    { type: 'conversation.item.deleted' },
  ]) {
    assert.deepEqual(transcript.hear(event), []);
  }
  assert.equal(
    transcript.hear({ type: 'conversation.item.deleted', item_id: 'f' })[0].state,
    'gone',
  );
});

test('a long conversation forgets its beginning', () => {
  const transcript = new Transcript();
  let gone = 0;
  for (let n = 0; n < 250; n += 1) {
    const changed = transcript.hear({
      type: 'input_audio_buffer.speech_started',
      item_id: `u${n}`,
    });
    gone += changed.filter(({ state }) => state === 'gone').length;
  }
  assert.equal(transcript.turns.length, 200);
  assert.equal(gone, 50);
  assert.equal(transcript.turns[0].id, 'u50');
});

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

function steps({ restarts = () => {}, flows = () => true, lost = () => false }) {
  const done = [];
  let placed = true;
  return {
    done,
    placed: () => placed,
    over: () => false,
    restart: async (attempt) => done.push('restart') && restarts(attempt),
    anew: async () => done.push('anew'),
    flows: async () => flows(done.length),
    lost: async (error) => {
      placed = !lost(error);
      return !placed;
    },
  };
}

test('a restart that brings audio back is all', async () => {
  const calm = steps({});
  assert.equal(await recover(calm), true);
  assert.deepEqual(calm.done, ['restart']);
});

test('three restarts in vain, then anew', async () => {
  const stubborn = steps({ flows: (done) => done > 3 });
  assert.equal(await recover(stubborn), true);
  assert.deepEqual(stubborn.done, ['restart', 'restart', 'restart', 'anew']);
});

test('a call that is gone is begun anew at once', async () => {
  const gone = steps({
    restarts: () => {
      throw Object.assign(new Error('gone'), { status: 404 });
    },
    lost: ({ status }) => status === 404,
  });
  assert.equal(await recover(gone), true);
  assert.deepEqual(gone.done, ['restart', 'anew']);
});

test('silence is a second without packets, after there were some', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  const clock = mock.method(performance, 'now', () => now);
  const told = [];
  let [now, packets] = [0, 0];
  const stop = watchForSilence(async () => packets, {
    first: () => told.push('first'),
    silent: () => told.push('silent'),
  });
  const pass = async (ms, arriving) => {
    for (let past = 0; past < ms; past += 250) {
      now += 250;
      packets += arriving;
      mock.timers.tick(250);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await pass(2_000, 0);
  assert.deepEqual(told, []);
  await pass(500, 12);
  await pass(750, 0);
  assert.deepEqual(told, ['first']);
  await pass(250, 0);
  assert.deepEqual(told, ['first', 'silent']);
  stop();
  clock.mock.restore();
  mock.timers.reset();
});
