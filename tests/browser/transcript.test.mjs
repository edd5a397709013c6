// The talk page's conversation: events of a call to turns, over the loss of its server too.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const part = (name) => import(new URL(`../../signaling/web/${name}.js`, import.meta.url));
const { Transcript } = await part('transcript');

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

// What was said so far: a word, an answer that was cut short, a tool; then something half said.
function spoken() {
  const transcript = new Transcript();
  const item = (type, item) => transcript.hear({ type: `conversation.item.${type}`, item });
  item('done', message('u1', 'user', { type: 'input_audio', transcript: 'Hello' }));
  item('done', message('a1', 'assistant', { transcript: 'One two three' }));
  transcript.hear({ type: 'conversation.item.truncated', item_id: 'a1', audio_end_ms: 900 });
  item('done', { type: 'function_call', id: 'f1', name: 'weather', arguments: '{}' });
  item('done', message('u2', 'user', { type: 'input_audio', transcript: null }));
  const about = { item_id: 'a2', response_id: 'r' };
  transcript.hear({ type: 'response.output_audio_transcript.delta', ...about, delta: 'Red green' });
  return transcript;
}

function restore(transcript, ...items) {
  transcript.hear({ type: 'session.created' });
  for (const item of items) {
    for (const type of ['added', 'done']) {
      transcript.hear({ type: `conversation.item.${type}`, item });
    }
  }
}

const KEPT = [
  message('u1', 'user', { type: 'input_text', text: 'Hello' }),
  message('a1', 'assistant', { type: 'output_text', text: 'One two' }),
  { type: 'function_call', id: 'f1', name: 'weather', arguments: '{}' },
  message('u2', 'user', { type: 'input_text', text: '[no transcript]' }),
  message('a2', 'assistant', { type: 'output_text', text: 'Red' }),
];
const SHOWN = [
  ['user', 'Hello', null],
  ['agent', 'One two three', 'One two'],
  ['tool', 'weather({})', null],
  ['user', '', null],
  ['agent', 'Red green', 'Red'],
  ['page', 'elsewhere', null],
];
const shown = ({ turns }) => turns.map(({ who, text, heard }) => [who, text, heard]);

for (const [what, rename] of [
  ['under their old ids', (id) => id],
  ['under new ids', (id) => `new_${id}`],
]) {
  test(`restored items are shown once, ${what}`, () => {
    const transcript = spoken();
    transcript.seam('elsewhere', true);
    restore(transcript, ...KEPT.slice(0, 4).map((item) => ({ ...item, id: rename(item.id) })));
    assert.deepEqual(shown(transcript).slice(0, 4), SHOWN.slice(0, 4));
    assert.equal(transcript.turns.length, SHOWN.length);
    assert.equal(turn(transcript, 'a2').state, 'done');
    assert.equal(turn(transcript, 'a2').note, 'cut off');
  });
}

test('of what was being said, as much is shown as heard as was kept', () => {
  const transcript = spoken();
  transcript.seam('elsewhere', true);
  restore(transcript, ...KEPT);
  assert.deepEqual(shown(transcript), SHOWN);
});

test('what was not known here is shown; what is said after the seam is never taken for old', () => {
  const transcript = spoken();
  transcript.seam('elsewhere', true);
  restore(transcript, message('x', 'user', { type: 'input_text', text: 'Who?' }));
  assert.deepEqual(shown(transcript).at(-1), ['user', 'Who?', null]);
  transcript.hear({ type: 'input_audio_buffer.speech_started', item_id: 'u3' });
  const again = message('u3', 'user', { type: 'input_audio', transcript: 'Hello' });
  transcript.hear({ type: 'conversation.item.done', item: again });
  assert.deepEqual(shown(transcript).at(-1), ['user', 'Hello', null]);
  const later = message('u4', 'user', { type: 'input_text', text: 'Hello' });
  transcript.hear({ type: 'conversation.item.done', item: later });
  assert.equal(transcript.turns.length, 9);
});

test('a call begun anew repeats nothing', () => {
  const transcript = spoken();
  const [cut, seam] = transcript.seam('anew', false);
  assert.deepEqual([cut.id, seam.who], ['a2', 'page']);
  restore(transcript, message('x', 'user', { type: 'input_text', text: 'Hello' }));
  assert.deepEqual(shown(transcript).at(-1), ['user', 'Hello', null]);
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
