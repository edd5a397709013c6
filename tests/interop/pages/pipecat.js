// @pipecat-ai/client-js and its unchanged small-webrtc-transport. The transport's own way to a
// microphone loads code from the internet, so it gets a media manager of ours: an option it has.

import { PipecatClient, RTVIMessageType } from '@pipecat-ai/client-js';
import { SmallWebRTCTransport } from '@pipecat-ai/small-webrtc-transport';

class Microphone {
  supportsScreenShare = false;
  isCamEnabled = false;
  isSharingScreen = false;
  isMicEnabled = true;
  selectedMic = {};
  selectedCam = {};
  selectedSpeaker = {};
  #track = null;

  setClientOptions() {}
  setUserAudioCallback() {}
  async initialize() {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    [this.#track] = stream.getAudioTracks();
  }
  async connect() {
    if (!this.#track) await this.initialize();
  }
  async disconnect() {
    this.#track?.stop();
    this.#track = null;
  }
  tracks() {
    // A copy for each: the transport stops the tracks of a connection that it has replaced.
    return { local: this.#track ? { audio: this.#track.clone() } : {} };
  }
  enableMic(enable) {
    this.isMicEnabled = enable;
    if (this.#track) this.#track.enabled = enable;
  }
  getAllMics = async () => [];
  getAllCams = async () => [];
  getAllSpeakers = async () => [];
}

const known = new Set(Object.values(RTVIMessageType));
const own = { heard: {}, errors: [], states: [], known: [...known], transcripts: [], bot_ready: null };
let client = null;
let transport = null;
const player = new Audio();

function play(track) {
  player.srcObject = new MediaStream([track]);
  player.play();
}

const note = (name) => () => (own.heard[name] = (own.heard[name] ?? 0) + 1);

window.client = {
  async connect({ url, api_key }) {
    transport = new SmallWebRTCTransport({ mediaManager: new Microphone() });
    client = new PipecatClient({
      transport,
      enableMic: true,
      enableCam: false,
      callbacks: {
        onTransportStateChanged: (state) => own.states.push(state),
        onConnected: note('connected'),
        onDisconnected: note('disconnected'),
        onBotConnected: note('bot-connected'),
        onBotReady: (data) => {
          own.bot_ready = data;
          note('bot-ready')();
        },
        onUserStartedSpeaking: note('user-started-speaking'),
        onUserStoppedSpeaking: note('user-stopped-speaking'),
        onBotStartedSpeaking: note('bot-started-speaking'),
        onBotStoppedSpeaking: note('bot-stopped-speaking'),
        onUserTranscript: ({ text }) => own.transcripts.push(text),
        onBotOutput: note('bot-output'),
        onBotTranscript: note('bot-transcription'),
        onBotLlmText: note('bot-llm-text'),
        onBotLlmStarted: note('bot-llm-started'),
        onBotLlmStopped: note('bot-llm-stopped'),
        onTrackStarted: (track, participant) => {
          if (!participant?.local && track.kind === 'audio') play(track);
        },
        onError: (message) => own.errors.push(JSON.stringify(message)),
        onMessageError: (message) => own.errors.push(JSON.stringify(message)),
      },
    });
    const headers = new Headers({ Authorization: `Bearer ${api_key}` });
    await client.startBotAndConnect({
      endpoint: `${url}/start`,
      headers,
      requestData: {
        transport: 'webrtc',
        enableDefaultIceServers: false,
        body: { session: { audio: { input: { transcription: { model: 'any' } } } } },
      },
    });
    own.pc_id = transport.pc_id;
  },
  // Its own way after a lost connection: another peer connection under the same id. The end of the
  // old track makes it forget the new one, which it then announces to nobody, or not in time.
  async restart() {
    await transport.attemptReconnection(true);
    play(transport.getAudioTransceiver().receiver.track);
  },
  own: () => own,
  async hangUp() {
    await client.disconnect();
  },
};
