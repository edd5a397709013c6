// One peer connection with its channel, up to where the browser says what became of it.
// Tells by the functions of `tell`: phase(name), broken(), gone(), message({event, bytes}), track(track).
// After `silence` it tells nothing more, whatever the browser still has to say.

import { read } from "./stats.js";

export class Peer {
  #tell;
  #quiet = false;
  #observed = false;
  #sender;
  #channel;

  constructor(track, tell) {
    this.#tell = tell;
    this.pc = new RTCPeerConnection();
    this.#channel = this.pc.createDataChannel("oai-events"); // first, so the offer has its section
    this.#channel.onopen = () => this.#say("phase", "channel");
    this.#channel.onmessage = ({ data }) => this.#say("message", received(data));
    this.#channel.onclose = () => this.#say("gone");
    this.#sender = this.pc.addTrack(track);
    this.pc.ontrack = (event) => this.#say("track", event.track);
    this.pc.oniceconnectionstatechange = () => this.#iceChanged();
    this.up = new Promise((resolve) => {
      this.pc.onconnectionstatechange = () => {
        if (this.pc.connectionState !== "connected") return;
        this.#say("phase", "dtls");
        resolve();
      };
    });
  }

  /** The offer; with `{iceRestart: true}` one with new ICE credentials. */
  async offer(options) {
    await this.pc.setLocalDescription(await this.pc.createOffer(options));
    return this.pc.localDescription.sdp;
  }

  async accept(answer) {
    await this.pc.setRemoteDescription({ type: "answer", sdp: answer });
    this.#observe();
  }

  /** Send another track from now on; the call does not notice. */
  replace(track) {
    return this.#sender.replaceTrack(track);
  }

  /** True if the channel took the text. */
  send(text) {
    if (this.#quiet || this.#channel.readyState !== "open") return false;
    this.#channel.send(text);
    return true;
  }

  /** Audio packets received so far. */
  async received() {
    const receiver = this.pc.getReceivers()[0];
    if (!receiver || this.pc.signalingState === "closed") return 0;
    return read(await receiver.getStats()).packets.down;
  }

  silence() {
    this.#quiet = true;
  }

  close() {
    this.#quiet = true;
    this.pc.close();
  }

  #say(what, detail) {
    if (!this.#quiet) this.#tell[what](detail);
  }

  #iceChanged() {
    const state = this.pc.iceConnectionState;
    if (state === "connected" || state === "completed") this.#say("phase", "ice");
    // "disconnected" may be one lost check while audio flows; a broken path is silent long before
    if (state === "failed") this.#say("broken");
  }

  /** DTLS is up a little before the page hears that everything is. */
  #observe() {
    const { transport } = this.#sender;
    if (!transport || this.#observed) return;
    this.#observed = true;
    const look = () => {
      if (transport.state === "connected") this.#say("phase", "dtls");
      if (transport.state === "closed" || transport.state === "failed") this.#say("gone");
    };
    transport.addEventListener("statechange", look);
    look();
  }
}

/** What came on the channel. Of somebody else's it may be anything: it is shown as it is. */
function received(data) {
  let event = null;
  try {
    event = JSON.parse(data);
  } catch {
    // no JSON
  }
  if (typeof event?.type !== "string") event = { type: "(no event)", data: event ?? String(data) };
  return { event, bytes: data.length ?? data.byteLength };
}
