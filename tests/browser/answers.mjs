// Does a browser take our answers? Makes the offers of many kinds of clients, has each answered by
// the program `options.answerer` (offer in, answer out) and hands the answer in. No call is made.
// Options: browser, answerer (argv).

import { execFileSync } from 'node:child_process';
import { run } from './driver.mjs';

// Each runs inside the page and prepares `pc`.
const CLIENTS = {
  channel_before_track: (pc, microphone) => {
    pc.createDataChannel('oai-events');
    pc.addTrack(microphone());
  },
  stream: (pc, microphone, stream) => {
    pc.addTrack(microphone(), stream);
    pc.createDataChannel('oai-events');
  },
  listener: (pc) => pc.addTransceiver('audio', { direction: 'recvonly' }),
  speaker: (pc, microphone) => pc.addTransceiver(microphone(), { direction: 'sendonly' }),
  three_transceivers: (pc) => {
    pc.addTransceiver('audio', { direction: 'sendrecv' });
    pc.addTransceiver('video', { direction: 'sendrecv' });
    pc.addTransceiver('video', { direction: 'sendonly' });
    pc.createDataChannel('chat', { ordered: true });
  },
  video_first: (pc, microphone) => {
    pc.addTransceiver('video');
    pc.addTrack(microphone());
    pc.createDataChannel('chat');
  },
  two_audios: (pc, microphone) => {
    pc.addTrack(microphone());
    pc.addTransceiver('audio', { direction: 'recvonly' });
  },
  red_first: (pc, microphone) => {
    pc.addTrack(microphone());
    const codecs = RTCRtpReceiver.getCapabilities('audio').codecs;
    const rank = ({ mimeType }) => ['audio/red', 'audio/telephone-event', 'audio/opus'].indexOf(mimeType);
    const order = codecs.filter((c) => rank(c) >= 0).sort((a, b) => rank(a) - rank(b));
    pc.getTransceivers()[0].setCodecPreferences(order);
  },
  max_bundle: (pc, microphone) => {
    pc.addTrack(microphone());
    pc.addTransceiver('video');
    pc.createDataChannel('chat');
  },
};
const CONFIGURATIONS = { max_bundle: { bundlePolicy: 'max-bundle' } };

async function offer(prepare, configuration) {
  window.pc?.close();
  const context = (window.context ??= new AudioContext());
  const { stream } = context.createMediaStreamDestination();
  window.pc = new RTCPeerConnection(configuration ?? {});
  const microphone = () => stream.getAudioTracks()[0];
  new Function(`return (${prepare})`)()(window.pc, microphone, stream);
  await window.pc.setLocalDescription(await window.pc.createOffer());
  return window.pc.localDescription.sdp;
}

async function again() {
  await window.pc.setLocalDescription(await window.pc.createOffer());
  return window.pc.localDescription.sdp;
}

async function take(sdp) {
  try {
    await window.pc.setRemoteDescription({ type: 'answer', sdp });
    return window.pc.signalingState;
  } catch (error) {
    return String(error.message ?? error);
  }
}

await run(async (browser, { answerer }) => {
  const page = await browser.newPage();
  const [program, ...argv] = answerer;
  const answer = (input) => execFileSync(program, argv, { input, encoding: 'utf8' });
  const clients = {};
  for (const [name, prepare] of Object.entries(CLIENTS)) {
    const rounds = [];
    for (const say of [() => page.evaluate(offer, String(prepare), CONFIGURATIONS[name]), () => page.evaluate(again)]) {
      const offered = await say();
      const answered = answer(JSON.stringify([...rounds.map((round) => round.offer), offered]));
      rounds.push({ offer: offered, answer: answered, state: await page.evaluate(take, answered) });
    }
    clients[name] = rounds;
  }
  return { clients };
});
