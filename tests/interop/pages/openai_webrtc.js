// `openai` (npm) in a browser: its WebRTC connection, which leaves the exchange of SDP to its user.

import { OpenAIRealtimeWebRTC } from 'openai/realtime/webrtc';

const own = { errors: [], states: [] };
let connection = null;
let responding = false;

window.client = {
  async connect({ url, key }) {
    connection = new OpenAIRealtimeWebRTC();
    connection.onConnectionEvent((event) => {
      own.states.push(event.state ?? event.type);
      if (event.type === 'error') own.errors.push(String(event.error));
    });
    connection.on('response.created', () => (responding = true));
    connection.on('response.done', () => (responding = false));
    const player = new Audio();
    player.autoplay = true;
    connection.peerConnection.ontrack = ({ streams }) => (player.srcObject = streams[0]);
    const microphone = await navigator.mediaDevices.getUserMedia({ audio: true });
    connection.peerConnection.addTrack(microphone.getAudioTracks()[0], microphone);
    await connection.connect({
      exchangeSdp: async (offer, { signal }) => {
        const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/sdp' };
        const answer = await fetch(`${url}/v1/realtime/calls`, {
          method: 'POST',
          body: offer,
          headers,
          signal,
        });
        return answer.text();
      },
    });
  },
  async interrupt() {
    if (responding) connection.send({ type: 'response.cancel' });
    connection.send({ type: 'output_audio_buffer.clear' });
  },
  own: () => own,
  async hangUp() {
    connection.close();
  },
};
