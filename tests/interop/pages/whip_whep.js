// `whip-whep`: publishes a peer connection of its user, trickles, restarts ICE by PATCH.

import { WHIPClient } from 'whip-whep/whip.js';

let client = null;
let pc = null;

window.client = {
  async connect({ url, key }) {
    pc = new RTCPeerConnection();
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    pc.addTrack(stream.getAudioTracks()[0], stream);
    pc.ontrack = ({ track }) => {
      const player = new Audio(); // it offers to send and receive, and so it gets an answer
      player.srcObject = new MediaStream([track]);
      player.play();
    };
    client = new WHIPClient();
    await client.publish(pc, `${url}/whip`, key);
  },
  async restart() {
    await client.restart();
  },
  own: () => ({ etag: client.etag, resource: client.resourceURL?.pathname.replace(/rtc_.*/, '') }),
  async hangUp() {
    await client.stop();
  },
};
