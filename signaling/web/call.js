// One conversation: the peer connection, its call at the server, and its recovery.
// Knows no page: it tells what happens by events `state` (detail {state, message}), `track` and
// `trouble` (detail: what the other side says is wrong).

import * as server from "./server.js";
import { read } from "./stats.js";

const SETUP_MS = 15000;
const SILENT_MS = 1000; // the other side always sends: so much silence is a broken path
const WATCH_MS = 250;
const HEALED_MS = 3000; // audio has to be back so soon after a restart
const RESTARTS = 3; // without success, before the call is begun anew
const FIRST_PAUSE_MS = 250; // after a failure; doubles
const PATIENCE_MS = 60000; // of a recovery as a whole
const GONE = [404, 409, 410, 502]; // statuses of a call that no restart can save
const ENDED = 410; // of one that was ended over there: only one whose path was lost is begun anew
const LOST = "consent_lost";
const ENDS = {
  hangup: "The other side has hung up.",
  backend_ended: "The other side has hung up.",
  expired: "The time of this call was up.",
  shutdown: "The server is going down. Press Talk to begin again.",
};

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Call extends EventTarget {
  pc = null;
  restarts = 0;
  speaking = false; // the other side, as it says itself
  timeline = {};
  placed = performance.now(); // the microphone is there; the click is in the timeline
  #track;
  #location = null;
  #state = "idle";
  #recovery = null;
  #watch = null;

  constructor(track, clicked) {
    super();
    this.#track = track;
    this.#begin(clicked);
  }

  get state() {
    return this.#state;
  }

  get location() {
    return this.#location;
  }

  get callId() {
    return this.#location?.split("/").pop() ?? null;
  }

  /** Place the call. Resolves when media can flow, rejects with the reason why not. */
  async start() {
    this.#say("calling", "Calling…");
    try {
      await this.#connect();
    } catch (error) {
      if (this.#over) return;
      this.#end("failed", error.message);
      throw error;
    }
  }

  stop() {
    this.#end("ended", "The call has ended.");
  }

  /** New ICE credentials and paths for the same call; begins it anew where that cannot be. */
  restart() {
    return this.#recover("Looking for a better way…");
  }

  async stats() {
    const figures = this.pc ? read(await this.pc.getStats()) : read(new Map());
    return { state: this.#state, restarts: this.restarts, ...figures };
  }

  get #over() {
    return this.#state === "ended" || this.#state === "failed";
  }

  #say(state, message) {
    if (this.#over) return;
    this.#state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { state, message } }));
  }

  #end(state, message) {
    if (this.#over) return;
    this.#leave();
    this.#say(state, message);
  }

  #begin(at) {
    const later = { answer: null, ice: null, dtls: null, channel: null, first_audio: null };
    this.timeline = { click: at, ...later };
  }

  #mark(phase) {
    this.timeline[phase] ??= performance.now();
    this.dispatchEvent(new Event("timeline"));
  }

  /** Hang up at the server, then close what is here: closed first, the call would be gone there. */
  #leave() {
    const { pc } = this;
    clearInterval(this.#watch);
    if (this.#location) server.hangUp(this.#location).finally(() => pc.close());
    else pc?.close();
    this.#location = null;
  }

  async #connect() {
    const pc = new RTCPeerConnection();
    this.pc = pc;
    this.speaking = false;
    const channel = pc.createDataChannel("oai-events"); // first, so the offer has its section
    channel.onopen = () => this.#mark("channel");
    channel.onmessage = ({ data }) => this.#told(data);
    channel.onclose = () => this.#closed(pc);
    pc.addTrack(this.#track);
    pc.ontrack = ({ track }) => this.#heard(track);
    pc.oniceconnectionstatechange = () => this.#iceChanged(pc);
    const up = new Promise((resolve) => {
      pc.onconnectionstatechange = () => {
        if (pc !== this.pc || pc.connectionState !== "connected") return;
        this.#mark("dtls");
        if (!this.#recovery) this.#say("connected", "You are connected. Speak.");
        resolve();
      };
    });
    await pc.setLocalDescription(await pc.createOffer());
    const { answer, location } = await server.create(pc.localDescription.sdp);
    if (this.#over) return server.hangUp(location); // hung up meanwhile
    this.#location = location;
    this.#mark("answer");
    await pc.setRemoteDescription({ type: "answer", sdp: answer });
    this.#observe(pc);
    await Promise.race([up, this.#deadline(pc, answer)]);
  }

  async #deadline(pc, answer) {
    await sleep(SETUP_MS);
    const relay = /^a=candidate:\S+ \d+ \S+ \d+ (\S+) (\d+)/m.exec(answer);
    const where = relay ? `${relay[1]} port ${relay[2]}` : "the relay";
    throw new Error(
      this.timeline.ice
        ? "The relay was reached, but encryption could not be set up."
        : `Nothing came back from ${where} over UDP. A firewall may be in the way.`,
    );
  }

  #iceChanged(pc) {
    if (pc !== this.pc) return;
    const state = pc.iceConnectionState;
    if (state === "connected" || state === "completed") this.#mark("ice");
    const broken = state === "disconnected" || state === "failed";
    if (broken && this.#state === "connected") this.#recover("The way broke. Finding another…");
  }

  /** Somebody closed the connection over there, or it broke: asking for a restart tells which. */
  #closed(pc) {
    if (pc !== this.pc || this.#state !== "connected") return;
    this.#recover("The connection closed. Asking why…");
  }

  /** An event of the model, or of somebody else's channel: anything. */
  #told(data) {
    let event = null;
    try {
      event = JSON.parse(data);
    } catch {
      return;
    }
    const [, what] = /^output_audio_buffer\.(\w+)$/.exec(event?.type) ?? [];
    if (what) this.speaking = what === "started";
    if (what && this.#state === "connected") {
      this.#say("connected", this.speaking ? "The other side is speaking." : "Listening to you.");
    }
    if (event?.type !== "error") return;
    const detail = event.error?.message ?? "The other side reports an error.";
    this.dispatchEvent(new CustomEvent("trouble", { detail }));
  }

  /** DTLS is up a little before the page hears that everything is. */
  #observe(pc) {
    const transport = pc.getSenders()[0]?.transport;
    if (!transport) return;
    const look = () => {
      if (pc === this.pc && transport.state === "connected") this.#mark("dtls");
      if (["closed", "failed"].includes(transport.state)) this.#closed(pc);
    };
    transport.addEventListener("statechange", look);
    look();
  }

  #heard(track) {
    this.dispatchEvent(new CustomEvent("track", { detail: track }));
    track.addEventListener("unmute", () => this.#mark("first_audio"), { once: true });
    clearInterval(this.#watch);
    let [last, silent, before] = [0, 0, performance.now()];
    this.#watch = setInterval(async () => {
      const received = await this.#received();
      const now = performance.now();
      if (received > 0) this.#mark("first_audio");
      // a throttled timer says nothing about the network: a turn counts for its own length only
      silent = received === last ? silent + Math.min(now - before, 2 * WATCH_MS) : 0;
      [last, before] = [received, now];
      if (received > 0 && silent >= SILENT_MS && this.#state === "connected") {
        this.#recover("It went silent. Finding another way…");
      }
    }, WATCH_MS);
  }

  async #received() {
    const receiver = this.pc.getReceivers()[0];
    if (!receiver || this.pc.signalingState === "closed") return 0;
    return read(await receiver.getStats()).packets.down;
  }

  #recover(message) {
    if (this.#over || !this.pc) return Promise.resolve();
    this.#recovery ??= this.#mend(message).finally(() => (this.#recovery = null));
    return this.#recovery;
  }

  async #mend(message) {
    this.#say("recovering", message);
    const begun = performance.now();
    let pause = FIRST_PAUSE_MS;
    for (let attempt = 0; performance.now() - begun < PATIENCE_MS; attempt++) {
      try {
        if (this.#location && attempt < RESTARTS) await this.#restartOnce();
        else await this.#anew();
        if (this.#over) return;
        if (await this.#flows()) return this.#say("connected", "You are connected again. Speak.");
      } catch (error) {
        if (this.#over) return;
        if (this.#location && error.status === ENDED && (await this.#ended())) return;
        if (this.#location && GONE.includes(error.status)) {
          this.#location = null;
          continue;
        }
        await sleep(pause);
        pause = Math.min(2 * pause, 4000);
      }
    }
    this.#end("failed", "The call could not be saved. Press Talk to begin again.");
  }

  /** The call has ended over there: so it does here, unless that was for a lost path only. */
  async #ended() {
    const reason = await server.ending(this.#location);
    if (this.#over) return true;
    if (reason === LOST) return false;
    this.#location = null;
    this.#end("ended", ENDS[reason] ?? `The call has ended${reason ? `: ${reason}` : ""}.`);
    return true;
  }

  async #restartOnce() {
    const pc = this.pc;
    await pc.setLocalDescription(await pc.createOffer({ iceRestart: true }));
    const answer = await server.restart(this.#location, pc.localDescription.sdp);
    if (this.#over) return;
    await pc.setRemoteDescription({ type: "answer", sdp: answer });
    this.restarts++;
  }

  async #anew() {
    this.#leave();
    this.placed = performance.now();
    this.#begin(this.placed);
    await this.#connect();
  }

  async #flows() {
    const deadline = performance.now() + HEALED_MS;
    const before = await this.#received();
    while (performance.now() < deadline && !this.#over) {
      await sleep(50);
      if ((await this.#received()) > before) return true;
    }
    return false;
  }
}
