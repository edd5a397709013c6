// Calls one after another: from the offer that goes out to the first packet that comes back.
// Options: url, browser, calls, rounds: [argv run before each round of `calls`, of which the first
// call opens the connection and is left out].
// The clock starts with `fetch`: the microphone and createOffer are no part of it.

import { execFileSync } from 'node:child_process';
import { openTalkPage, run } from '../browser/driver.mjs';

async function prepare() {
  const microphone = await navigator.mediaDevices.getUserMedia({ audio: true });
  window.setUp = async (limit) => {
    const pc = new RTCPeerConnection();
    const [marks, ends] = [{}, []];
    let began;
    const mark = (name) => { marks[name] ??= performance.now() - began; };
    const reached = (target, event, name, test = () => true) =>
      ends.push(new Promise((resolve) => {
        target.addEventListener(event, () => { if (test()) { mark(name); resolve(); } });
      }));
    const isUp = (state) => ['connected', 'completed'].includes(state);
    pc.createDataChannel('oai-events');
    pc.addTrack(microphone.getAudioTracks()[0]);
    reached(pc, 'iceconnectionstatechange', 'ice', () => isUp(pc.iceConnectionState));
    reached(pc, 'connectionstatechange', 'dtls', () => pc.connectionState === 'connected');
    reached(pc.getReceivers()[0].track, 'unmute', 'rtp'); // the first packet is there
    await pc.setLocalDescription(await pc.createOffer());
    const { sdp } = pc.localDescription;
    began = performance.now();
    const reply = await fetch('/v1/realtime/calls', {
      method: 'POST', headers: { 'Content-Type': 'application/sdp' }, body: sdp,
    });
    const answer = await reply.text();
    mark('answer');
    await pc.setRemoteDescription({ type: 'answer', sdp: answer });
    const late = new Promise((resolve) => { setTimeout(resolve, limit, 'late'); });
    const outcome = await Promise.race([Promise.all(ends), late]);
    pc.close();
    await fetch(reply.headers.get('Location'), { method: 'DELETE' });
    return outcome === 'late' ? { late: Object.keys(marks) } : marks;
  };
}

await run(async (browser, options) => {
  const { page } = await openTalkPage(browser, options);
  await page.evaluate(prepare);
  const rounds = [];
  for (const [file, ...args] of options.rounds) {
    execFileSync(file, args, { timeout: 10_000 });
    const calls = [];
    for (let n = 0; n <= options.calls; n += 1) {
      calls.push(await page.evaluate(() => window.setUp(10_000)));
    }
    rounds.push(calls.slice(1));
  }
  return { rounds };
});
