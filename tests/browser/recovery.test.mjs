// How the talk page saves a call: what it takes for a loss, and which step follows which.

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';

const part = (name) => import(new URL(`../../signaling/web/${name}.js`, import.meta.url));
const { recover } = await part('recovery');
const { watchForSilence } = await part('silence');
const { verdict } = await part('verdict');

const gone = () => {
  throw Object.assign(new Error('gone'), { status: 404 });
};

// A call whose steps do what `fails` says, and flows after `flows` steps.
function steps({ fails = {}, flows = () => true, lost = () => true, over = () => false }) {
  const done = [];
  let placed = true;
  const step = (name) => async () => {
    done.push(name);
    fails[name]?.(done.length);
    placed = true;
  };
  return {
    done,
    placed: () => placed,
    over: () => over(done.length),
    restart: step('restart'),
    resume: step('resume'),
    anew: step('anew'),
    flows: async () => flows(done.length),
    lost: async (name, error) => {
      const gone = name !== 'anew' && lost(error);
      if (gone && name === 'resume') placed = false;
      return gone;
    },
  };
}

for (const [what, wishes, done] of [
  ['a restart that brings audio back is all', {}, ['restart']],
  [
    'three restarts in vain, then resumed',
    { flows: (done) => done > 3 },
    ['restart', 'restart', 'restart', 'resume'],
  ],
  [
    'resumed at once where the call is gone',
    { fails: { restart: gone } },
    ['restart', 'resume'],
  ],
  [
    'anew at once where nothing was kept',
    { fails: { restart: gone, resume: gone } },
    ['restart', 'resume', 'anew'],
  ],
  [
    'a resumed call is restarted where its path is bad',
    { fails: { restart: (n) => n === 1 && gone() }, flows: (done) => done > 2 },
    ['restart', 'resume', 'restart'],
  ],
  [
    'each call may be resumed',
    { fails: { restart: gone }, flows: (done) => done > 3 },
    ['restart', 'resume', 'restart', 'resume'],
  ],
]) {
  test(what, async () => {
    const call = steps(wishes);
    assert.equal(await recover(call), true);
    assert.deepEqual(call.done, done);
  });
}

test('a call that was hung up meanwhile is not resumed', async () => {
  const call = steps({ fails: { restart: gone }, over: (done) => done > 0 });
  assert.equal(await recover(call), false);
  assert.deepEqual(call.done, ['restart']);
});

test('what may pass is tried again, with longer and longer pauses', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  let [now, result] = [0, null];
  const tried = [];
  const fail = (done) => {
    tried.push(now);
    if (done < 5) gone();
  };
  const call = steps({
    fails: { restart: gone, resume: fail },
    lost: () => call.done.length === 1,
  });
  recover(call).then((saved) => (result = saved));
  for (; result === null && now < 5_000; now += 50) {
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    mock.timers.tick(50);
  }
  mock.timers.reset();
  assert.equal(result, true);
  assert.deepEqual(call.done, ['restart', 'resume', 'resume', 'resume', 'resume']);
  assert.deepEqual(tried, [0, 250, 750, 1_750]);
});

// `verdict` where the server answers `replies` (by the end of the address) and nothing else.
async function judged(step, status, replies = {}) {
  const fetched = mock.method(globalThis, 'fetch', async (url) => {
    const reply = Object.entries(replies).find(([end]) => url.endsWith(end))?.[1];
    if (!reply) throw new TypeError('no network');
    return { ok: true, json: async () => reply };
  });
  try {
    const error = status === undefined ? new Error('no media') : { status, message: 'why' };
    const { lost, over } = await verdict(step, error, '/v1/realtime/calls/rtc_1_2');
    return over?.state ?? lost;
  } finally {
    fetched.mock.restore();
  }
}

test('an error says whether the call is lost', async () => {
  for (const status of [404, 409, 500, 502]) assert.equal(await judged('restart', status), true);
  for (const status of [404, 409, 410, 502]) assert.equal(await judged('resume', status), true);
  for (const step of ['restart', 'resume', 'anew']) {
    for (const status of [429, 503]) assert.equal(await judged(step, status), false);
    for (const status of [401, 403]) assert.equal(await judged(step, status), 'failed');
  }
  assert.equal(await judged('anew', 502), false);
  assert.equal(await judged('resume', undefined), false);
});

test('a server that hangs has lost the call; nobody has where the network is away', async () => {
  assert.equal(await judged('restart', 0, { '/healthz': {} }), true);
  assert.equal(await judged('restart', 0), false);
  assert.equal(await judged('resume', 0, { '/healthz': {} }), false);
});

test('a call that ended is over, but for one that its server lost', async () => {
  const ended = (reason) => judged('restart', 410, { rtc_1_2: { reason } });
  for (const reason of ['consent_lost', 'internal_error', 'shutdown']) {
    assert.equal(await ended(reason), true);
  }
  assert.equal(await ended('hangup'), 'ended');
  assert.equal(await ended('resumed'), 'ended');
  assert.equal(await judged('restart', 410), true); // who ended it is gone
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
