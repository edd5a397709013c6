// `@eyevinn/whip-web-client`: publishes a stream, trickles if OPTIONS says so. It does so only for
// sections after the first one, so it publishes a picture, too.

import { WHIPClient } from '@eyevinn/whip-web-client';

let client = null;

window.client = {
  async connect({ url, key }) {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true, video: true });
    client = new WHIPClient({ endpoint: `${url}/whip`, opts: { authkey: key, iceServers: [] } });
    await client.setIceServersFromEndpoint();
    await client.ingest(stream);
  },
  own: () => ({ trickles: client.supportTrickleIce() }),
  async hangUp() {
    await client.destroy();
  },
};
