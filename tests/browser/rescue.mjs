// How a page saves its call, seen from outside: functions that run inside the page. `watchRescue`
// notes when the last packet came before the page saw a loss, when it saw it, and when the first
// one came after; all in ms since 1970, as the browser's clock has it.

const LIMIT_MS = 30_000; // for whatever has to happen; nothing is judged by it

// Keeps what the channels of calls to come receive, a list for each, in `window.channels`.
export function keepChannels() {
  window.channels = [];
  const { prototype } = RTCPeerConnection;
  const create = prototype.createDataChannel;
  prototype.createDataChannel = function (...args) {
    const [channel, events] = [create.apply(this, args), []];
    window.channels.push(events);
    channel.addEventListener('message', ({ data }) => events.push(JSON.parse(data)));
    return channel;
  };
}

export function watchRescue() {
  const now = () => performance.timeOrigin + performance.now();
  const watch = { last: null, noticed: null, back: null, states: [] };
  window.rescue = watch;
  let [packets, connection] = [0, window.ferryline.pc];
  const look = async () => {
    const { pc } = window.ferryline;
    const none = new Promise((resolve) => setTimeout(resolve, 200)); // of one closed meanwhile
    const known = await Promise.race([pc?.getStats().catch(() => null), none]);
    const reports = [...(known?.values() ?? [])];
    const audio = reports.find((s) => s.type === 'inbound-rtp' && s.kind === 'audio');
    const [count, at] = [audio?.packetsReceived ?? 0, now()];
    const came = count - (pc === connection ? packets : 0);
    [connection, packets] = [pc, count];
    // statistics are some ms old: an arrival is known by its own time stamp
    const arrived = audio?.lastPacketReceivedTimestamp ?? at;
    if (came > 0 && watch.noticed === null) watch.last = arrived;
    if (came > 0 && watch.noticed !== null && arrived > watch.noticed) {
      watch.back = Math.max(arrived - (came - 1) * 20, watch.noticed);
      return;
    }
    setTimeout(look, 10);
  };
  new MutationObserver(() => {
    const { state } = document.body.dataset;
    watch.states.push(state);
    if (state === 'recovering') watch.noticed ??= now();
  }).observe(document.body, { attributeFilter: ['data-state'] });
  look();
}

// What the page shows and knows of its call.
export async function look() {
  const { callId, turns } = window.ferryline;
  const { restarts, resumes } = await window.ferryline.stats();
  const status = document.getElementById('status').textContent;
  const rows = document.querySelectorAll('#turns li').length;
  return { call_id: callId, status, turns, rows, restarts, resumes };
}

// What the server of the present call said that had been said before.
export function restored() {
  const events = window.channels.at(-1);
  const first = events.findIndex(({ type }) => !/^(session|conversation\.item)\./.test(type));
  const before = first < 0 ? events : events.slice(0, first);
  return before.filter(({ type }) => type === 'conversation.item.done').map(({ item }) => item);
}

// Who has the call: `address:port` of its transceiver.
export async function owner() {
  const answer = await fetch(`/v1/realtime/calls/${window.ferryline.callId}/path`);
  return (await answer.json()).endpoint;
}

// Writes `text` to the other side and waits until it has answered that.
export async function converse(page, text) {
  const answers = (text) => {
    const same = (turn) => turn.who === 'agent' && turn.state === 'done' && turn.text === text;
    return window.ferryline.turns.filter(same).length;
  };
  await until(page, () => !document.getElementById('words').disabled);
  const before = await page.evaluate(answers, text);
  await page.type('#words', text);
  await page.keyboard.press('Enter');
  const more = `(text, before) => (${answers})(text) > before`;
  await until(page, `(${more})(${JSON.stringify(text)}, ${before})`);
}

// Until the call is connected, after it was not, and all that was restored is here: the answer to a
// question about nothing comes after it.
export async function untilSaved(page) {
  await until(page, () => window.rescue.back !== null && document.body.dataset.state === 'connected');
  const about = { event_id: 'page_nothing', item_id: 'nothing' };
  const ask = (about) => window.ferryline.send({ type: 'conversation.item.retrieve', ...about });
  await until(page, ask, about);
  await until(page, () => window.channels.at(-1).some(({ type }) => type === 'error'));
}

// Throws what the page shows where `test` does not come true.
export async function until(page, test, ...args) {
  try {
    await page.waitForFunction(test, { timeout: LIMIT_MS, polling: 20 }, ...args);
  } catch {
    const seen = await page.evaluate(look).catch(String);
    throw new Error(`not in time: ${test}; ${JSON.stringify(seen)}`.replaceAll('\n', ' '));
  }
}

// ms from the last packet to the notice, from there to the first packet; both also from `since`.
export function times({ last, noticed, back }, since) {
  const ms = (from, to) => (from === null || to === null ? null : Math.round(to - from));
  return {
    notice_ms: ms(last, noticed),
    voice_back_ms: ms(noticed, back),
    kill_to_notice_ms: ms(since, noticed),
    kill_to_voice_ms: ms(since, back),
  };
}
