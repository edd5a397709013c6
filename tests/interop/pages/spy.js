// An observer beside an unchanged client, put into its page before anything else. It keeps what the
// client makes and gets (connections, channel messages, microphones, answers of HTTP) in
// `window.spy`, measures how loud the other side is, and records it in Chromium. The microphone is
// one without processing, and silent until `spy.speak(true)`.

(() => {
  const METER_MS = 50;
  const RATE = 48_000;
  const begun = performance.now();
  const spy = (window.spy = {
    peers: [],
    messages: [], // [seconds, text]
    mics: [], // what lets each speak, or not
    calls: [], // ids that answers named
    http: [], // [method, path without id, status, and what a refusal says]
    levels: [], // [seconds, RMS of what came since the last one]
    blocks: [],
    recordedFrom: null, // seconds
    now: () => (performance.now() - begun) / 1_000,
  });

  const Peer = window.RTCPeerConnection;
  window.RTCPeerConnection = class RTCPeerConnection extends Peer {
    constructor(...settings) {
      super(...settings);
      spy.peers.push(this);
      this.addEventListener('track', ({ track }) => track.kind === 'audio' && listen(track));
      this.addEventListener('datachannel', ({ channel }) => keep(channel));
    }
    createDataChannel(...settings) {
      return keep(super.createDataChannel(...settings));
    }
  };

  function keep(channel) {
    channel.addEventListener('message', ({ data }) => spy.messages.push([spy.now(), data]));
    return channel;
  }

  // The microphone itself is silenced, whatever a client makes of its track.
  const enabled = Object.getOwnPropertyDescriptor(MediaStreamTrack.prototype, 'enabled');
  let speaking = false;
  function gate(track, wanted = true) {
    const apply = () => enabled.set.call(track, wanted && speaking);
    const set = (on) => {
      wanted = on;
      apply();
    };
    Object.defineProperty(track, 'enabled', { get: () => wanted, set });
    const clone = track.clone.bind(track);
    track.clone = () => gate(clone(), wanted);
    spy.mics.push(apply);
    apply();
    return track;
  }
  spy.speak = (on) => {
    speaking = on;
    for (const apply of spy.mics) apply();
    return spy.now();
  };

  const media = navigator.mediaDevices;
  const getUserMedia = media?.getUserMedia.bind(media);
  if (media) {
    media.getUserMedia = async (wanted) => {
      const plain = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
      const audio = wanted.audio && { ...(wanted.audio === true ? {} : wanted.audio), ...plain };
      const stream = await getUserMedia({ ...wanted, audio });
      stream.getAudioTracks().forEach((track) => gate(track));
      return stream;
    };
  }

  const { fetch } = window;
  window.fetch = async (...request) => {
    const response = await fetch(...request);
    const { pathname } = new URL(request[0]?.url ?? request[0], location.href);
    const method = request[1]?.method ?? request[0]?.method ?? 'GET';
    const why = response.ok ? [] : [(await response.clone().text()).slice(0, 300)];
    spy.http.push([method, pathname.replace(/rtc_[\w-]+/, '{id}'), response.status, ...why]);
    const json = /json/.test(response.headers.get('Content-Type') ?? '');
    const named = `${response.headers.get('Location')} ${json ? await response.clone().text() : ''}`;
    const id = /rtc_[\w-]+/.exec(named)?.[0];
    if (id && !spy.calls.includes(id)) spy.calls.push(id);
    return response;
  };

  spy.peer = () => spy.peers.findLast((peer) => peer.signalingState !== 'closed');
  let last = null;
  setInterval(async () => {
    const peer = spy.peer();
    const report = await peer?.getStats();
    const inbound = [...(report?.values() ?? [])].find(
      (s) => s.type === 'inbound-rtp' && s.kind === 'audio',
    );
    const now = { peer, at: inbound?.totalSamplesDuration ?? 0, energy: inbound?.totalAudioEnergy ?? 0 };
    if (last && last.peer === peer && now.at > last.at) {
      const power = Math.max(0, now.energy - last.energy) / (now.at - last.at);
      spy.levels.push([spy.now(), Math.sqrt(power)]);
    }
    last = now;
  }, METER_MS);
  spy.loud = (since, level, times) =>
    spy.levels.filter(([at, rms]) => at > since && rms > level).length >= times;
  spy.quiet = (seconds, level) => {
    const recent = spy.levels.filter(([at]) => at > spy.now() - seconds);
    return recent.length > 3 && recent.every(([, rms]) => rms < level);
  };

  async function listen(track) {
    if (!window.chrome || spy.recordedFrom !== null) return; // Firefox has no clock for it here
    spy.recordedFrom = Infinity;
    const context = new AudioContext({ sampleRate: RATE });
    const worklet = `registerProcessor('tap', class extends AudioWorkletProcessor {
      process([input]) {
        this.port.postMessage((input[0] ?? new Float32Array(128)).slice());
        return true;
      }
    });`;
    const code = new Blob([worklet], { type: 'text/javascript' });
    await context.audioWorklet.addModule(URL.createObjectURL(code));
    const tap = new AudioWorkletNode(context, 'tap');
    tap.port.onmessage = ({ data }) => {
      if (!spy.blocks.length) spy.recordedFrom = spy.now();
      spy.blocks.push(data);
    };
    spy.source = context.createMediaStreamSource(new MediaStream([track]));
    spy.source.connect(tap).connect(context.destination);
    await context.resume();
  }

  // Base64 of 16-bit little-endian mono PCM.
  spy.recording = () => {
    const pcm = new Int16Array(spy.blocks.length * 128);
    spy.blocks.forEach((block, at) =>
      block.forEach((sample, i) => {
        pcm[at * 128 + i] = Math.max(-1, Math.min(1, sample)) * 32767;
      }),
    );
    const bytes = new Uint8Array(pcm.buffer);
    let text = '';
    for (let at = 0; at < bytes.length; at += 8192) {
      text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    }
    return btoa(text);
  };
})();
