// OpenAI's sample for browsers, as its documents have it; only the URL is ours. What it sends is
// what createOffer() gave, so without any candidate.

let pc = null;

window.client = {
  async connect({ url, key }) {
    pc = new RTCPeerConnection();
    const audioElement = document.createElement('audio');
    audioElement.autoplay = true;
    pc.ontrack = (e) => (audioElement.srcObject = e.streams[0]);
    const ms = await navigator.mediaDevices.getUserMedia({ audio: true });
    pc.addTrack(ms.getTracks()[0]);
    const dc = pc.createDataChannel('oai-events');
    const opened = new Promise((resolve) => dc.addEventListener('open', resolve));
    const offer = await pc.createOffer();
    await pc.setLocalDescription(offer);
    const sdpResponse = await fetch(`${url}/v1/realtime/calls`, {
      method: 'POST',
      body: offer.sdp,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/sdp' },
    });
    await pc.setRemoteDescription({ type: 'answer', sdp: await sdpResponse.text() });
    await opened;
  },
  async hangUp() {
    pc.close();
  },
};
