// What a scenario asks a page: functions that run inside the page, and a WAV writer for what it
// recorded. Nothing here starts, stops or judges a call.

import fs from 'node:fs';

// One call as getStats tells it. `selected` is the pair that carries the packets.
export function summary() {
  const { pc, callId, timeline } = window.ferryline;
  const one = (report, test) => [...report.values()].find(test) ?? {};
  return pc.getStats().then((report) => {
    const received = one(report, (s) => s.type === 'inbound-rtp' && s.kind === 'audio');
    const sent = one(report, (s) => s.type === 'outbound-rtp' && s.kind === 'audio');
    const remote = one(report, (s) => s.type === 'remote-inbound-rtp' && s.kind === 'audio');
    const transport = one(report, (s) => s.type === 'transport');
    const pairs = [...report.values()].filter((s) => s.type === 'candidate-pair');
    const pair =
      report.get(transport.selectedCandidatePairId) ??
      pairs.find((s) => s.selected) ?? // Firefox
      pairs.find((s) => s.nominated && s.state === 'succeeded') ??
      {};
    const far = report.get(pair.remoteCandidateId) ?? {};
    const near = report.get(pair.localCandidateId) ?? {};
    const candidate = (c) => (c.address ?? c.ip ? `${c.address ?? c.ip}:${c.port}` : null);
    return {
      call_id: callId ?? null,
      timeline: { ...timeline },
      connection: pc.connectionState,
      ice: pc.iceConnectionState,
      dtls: transport.dtlsState ?? null, // absent from Firefox
      sctp: pc.sctp?.state ?? null,
      channel: one(report, (s) => s.type === 'data-channel').state ?? null,
      srtp_cipher: transport.srtpCipher ?? null,
      selected: { remote: candidate(far), local: candidate(near), rtt_s: pair.currentRoundTripTime },
      pair_changes: transport.selectedCandidatePairChanges ?? null,
      sent: sent.packetsSent ?? 0,
      sent_lost: remote.packetsLost ?? null, // as the far end reports it
      received: received.packetsReceived ?? 0,
      lost: received.packetsLost ?? 0,
      discarded: received.packetsDiscarded ?? 0,
      concealed: received.concealedSamples ?? 0,
      silent_concealed: received.silentConcealedSamples ?? 0,
      samples: received.totalSamplesReceived ?? 0,
      energy: received.totalAudioEnergy ?? 0,
      jitter_s: received.jitter ?? null,
    };
  });
}

// Resolves once the call is up: connected, and audio received. False after `limit` ms.
export async function untilHeard(limit) {
  const { pc } = window.ferryline;
  const end = performance.now() + limit;
  while (performance.now() < end) {
    const reports = [...(await pc.getStats()).values()];
    const heard = reports.some((s) => s.type === 'inbound-rtp' && s.packetsReceived > 0);
    if (heard && pc.connectionState === 'connected') return true;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return false;
}

// Starts to record microphone (left) and returned voice (right) at 48 kHz: two channels of one
// clock, so that their distance is the echo's delay. Chromium; Firefox has no clock for it here.
export async function startRecording() {
  const { pc } = window.ferryline;
  const context = new AudioContext({ sampleRate: 48_000 });
  const worklet = `registerProcessor('tap', class extends AudioWorkletProcessor {
    process([mic, back]) {
      const at = (input) => input[0] ?? new Float32Array(128);
      this.port.postMessage([at(mic).slice(), at(back).slice()]);
      return true;
    }
  });`;
  await context.audioWorklet.addModule(
    URL.createObjectURL(new Blob([worklet], { type: 'text/javascript' })),
  );
  const tap = new AudioWorkletNode(context, 'tap', { numberOfInputs: 2 });
  const blocks = [];
  tap.port.onmessage = ({ data }) => blocks.push(data);
  const tracks = [pc.getSenders(), pc.getReceivers()].map(
    (ends) => ends.map((end) => end.track).find((track) => track?.kind === 'audio'),
  );
  const sources = tracks.map((track) => context.createMediaStreamSource(new MediaStream([track])));
  sources.forEach((source, input) => source.connect(tap, 0, input));
  tap.connect(context.destination);
  await context.resume();
  window.recording = { context, blocks, sources };
  return context.state;
}

// Ends the recording; resolves to base64 of 16-bit little-endian stereo PCM.
export async function takeRecording() {
  const { context, blocks } = window.recording;
  await context.close();
  const pcm = new Int16Array(blocks.length * 256);
  blocks.forEach(([mic, back], block) => {
    for (let i = 0; i < mic.length; i += 1) {
      pcm[(block * 128 + i) * 2] = Math.max(-1, Math.min(1, mic[i])) * 32767;
      pcm[(block * 128 + i) * 2 + 1] = Math.max(-1, Math.min(1, back[i])) * 32767;
    }
  });
  const bytes = new Uint8Array(pcm.buffer);
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return btoa(text);
}

// Watches the arrival of returned packets until `stopWatch`. Chromium renews its statistics only
// every 50 ms, so a stretch between two looks is corrected by the packets that came within it.
export function startWatch() {
  const watch = { longest_ms: 0, running: true };
  window.watch = watch;
  let last = null;
  const look = async () => {
    const reports = [...(await window.ferryline.pc.getStats()).values()];
    const now = reports.find((s) => s.type === 'inbound-rtp' && s.kind === 'audio');
    if (!watch.running) return;
    const [packets, at] = [now?.packetsReceived ?? 0, now?.lastPacketReceivedTimestamp];
    if (last && packets > last.packets && at) {
      const stretch = at - last.at - (packets - last.packets - 1) * 20;
      watch.longest_ms = Math.max(watch.longest_ms, Math.round(stretch));
    } else if (last) {
      watch.longest_ms = Math.max(watch.longest_ms, Math.round(now.timestamp - last.at));
    }
    if (at && (!last || packets > last.packets)) last = { packets, at };
    setTimeout(look, 10);
  };
  look();
}

export function stopWatch() {
  window.watch.running = false;
  return window.watch.longest_ms;
}

// What the transceiver says about the call.
export async function farSide() {
  const answer = await fetch(`/v1/realtime/calls/${window.ferryline.callId}`);
  return answer.ok ? answer.json() : null;
}

// Hangs up and waits until it is done.
export async function hangUp() {
  const { pc } = window.ferryline;
  window.ferryline.stop();
  const end = performance.now() + 2_000;
  while (pc && pc.connectionState !== 'closed' && performance.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// Puts a call without the page's own recovery in its place: the page takes silence for a broken
// path and restarts, which would hide how the path itself behaves.
export function withoutRecovery() {
  const call = { pc: null, callId: null, timeline: {} };
  call.start = async () => {
    call.timeline.click = performance.now();
    const audio = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    const stream = await navigator.mediaDevices.getUserMedia({ audio });
    const pc = new RTCPeerConnection();
    call.pc = pc;
    pc.createDataChannel('oai-events');
    pc.addTrack(stream.getAudioTracks()[0]);
    await pc.setLocalDescription(await pc.createOffer());
    const answer = await fetch('/v1/realtime/calls', {
      method: 'POST',
      headers: { 'Content-Type': 'application/sdp' },
      body: pc.localDescription.sdp,
    });
    call.callId = answer.headers.get('Location').split('/').pop();
    await pc.setRemoteDescription({ type: 'answer', sdp: await answer.text() });
    call.timeline.answer = performance.now();
  };
  call.stop = () => {
    fetch(`/v1/realtime/calls/${call.callId}`, { method: 'DELETE', keepalive: true });
    call.pc.close();
  };
  window.ferryline = call;
}

// Sends nothing more, so that what is on the way can arrive before the ends are compared.
export async function mute() {
  for (const sender of window.ferryline.pc.getSenders()) {
    if (sender.track?.kind === 'audio') await sender.replaceTrack(null);
  }
}

export function writeWav(file, pcm, { channels = 2, rate = 48_000 } = {}) {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + pcm.length, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20); // PCM
  header.writeUInt16LE(channels, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(rate * channels * 2, 28);
  header.writeUInt16LE(channels * 2, 32);
  header.writeUInt16LE(16, 34); // bits
  header.write('data', 36);
  header.writeUInt32LE(pcm.length, 40);
  fs.writeFileSync(file, Buffer.concat([header, pcm]));
}
