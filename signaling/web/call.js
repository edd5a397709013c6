// One conversation: its connection, its call at the server, and its recovery. Knows no page.
// Tells by events: `state` {state, message, error}, `track`, `timeline`, `trouble` (what the other
// side says is wrong) and `event` {direction: sent | received | page, event, bytes}.

import { Peer } from "./peer.js";
import { recover, sleep } from "./recovery.js";
import * as server from "./server.js";
import { watchForSilence } from "./silence.js";
import { read } from "./stats.js";

const SETUP_MS = 15000;
const HEALED_MS = 3000; // audio has to be back so soon after a restart
const GONE = [404, 409, 410, 502]; // statuses of a call that no restart can save
const ENDED = 410; // of one that was ended over there: only one whose path was lost is begun anew
const LOST = "consent_lost";
const FORBIDDEN = [401, 403]; // trying again does not help
export const UNASKED = "page_"; // begins the event_id of what no person has asked for
const ENDS = {
  hangup: "The other side has hung up.",
  backend_ended: "The other side has hung up.",
  expired: "The time of this call was up.",
  shutdown: "The server is going down. Press Talk to begin again.",
};

export class Call extends EventTarget {
  restarts = 0;
  speaking = false; // the other side, as it says itself
  timeline = {};
  ingress = null; // where the server sent us, and why
  steering = null;
  #track;
  #peer = null;
  #location = null;
  #state = "idle";
  #recovery = null;
  #unwatch = () => {};

  /** `clicked`: when it was asked for, in `performance.now()` ms. The microphone is there now. */
  constructor(track, clicked) {
    super();
    this.#track = track;
    this.#begin(clicked);
  }

  get state() {
    return this.#state;
  }

  get pc() {
    return this.#peer?.pc ?? null;
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
      this.#end("failed", error.message, error);
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

  /** Say `event` to the other side; false while no channel is open. */
  send(event) {
    const text = JSON.stringify(event);
    const sent = this.#peer?.send(text) ?? false;
    if (sent) this.#tell("event", { direction: "sent", event, bytes: text.length });
    return sent;
  }

  /** Send another microphone from now on. */
  async replace(track) {
    this.#track = track;
    await this.#peer?.replace(track);
  }

  async stats() {
    const figures = read(this.pc ? await this.pc.getStats() : new Map());
    return { state: this.#state, restarts: this.restarts, ...figures };
  }

  get #over() {
    return this.#state === "ended" || this.#state === "failed";
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  #say(state, message, error) {
    if (this.#over) return;
    this.#state = state;
    this.#note(state, { message });
    this.#tell("state", { state, message, error });
  }

  /** Something that the page itself did, for whoever reads the events. */
  #note(what, detail) {
    this.#tell("event", {
      direction: "page",
      event: { type: `page.${what}`, ...detail },
      bytes: null,
    });
  }

  #end(state, message, error) {
    if (this.#over) return;
    this.#leave();
    this.#say(state, message, error);
  }

  #begin(clicked) {
    const later = { offer: null, answer: null, ice: null, dtls: null, channel: null };
    this.timeline = { click: clicked, microphone: performance.now(), ...later, first_audio: null };
  }

  #mark(phase) {
    if (this.timeline[phase] !== null) return;
    this.timeline[phase] = performance.now();
    this.#tell("timeline");
  }

  /** Hang up at the server, then close what is here: closed first, the call would be gone there. */
  #leave() {
    const peer = this.#peer;
    this.#unwatch();
    peer?.silence();
    if (this.#location) server.hangUp(this.#location).finally(() => peer.close());
    else peer?.close();
    this.#location = null;
  }

  async #connect() {
    const peer = new Peer(this.#track, {
      phase: (phase) => this.#reached(phase),
      broken: () => this.#broke("The way broke. Finding another…"),
      gone: () => this.#broke("The connection closed. Asking why…"), // a restart tells
      message: (data) => this.#told(data),
      track: (track) => this.#heard(peer, track),
    });
    this.#peer = peer;
    this.speaking = false;
    const offer = await peer.offer();
    this.#mark("offer");
    const created = await server.create(offer);
    if (this.#over) return server.hangUp(created.location); // hung up meanwhile
    this.#location = created.location;
    [this.ingress, this.steering] = [created.ingress, created.steering];
    this.#mark("answer");
    await peer.accept(created.answer);
    await Promise.race([peer.up, this.#deadline(created.answer)]);
  }

  async #deadline(answer) {
    await sleep(SETUP_MS);
    const relay = /^a=candidate:\S+ \d+ \S+ \d+ (\S+) (\d+)/m.exec(answer);
    const where = relay ? `${relay[1]} port ${relay[2]}` : "the relay";
    throw new Error(
      this.timeline.ice
        ? "The relay was reached, but encryption could not be set up."
        : `Nothing came back from ${where} over UDP. A firewall may be in the way.`,
    );
  }

  #reached(phase) {
    this.#mark(phase);
    const up = this.pc.connectionState === "connected";
    if (up && this.#state === "calling") this.#say("connected", "You are connected. Speak.");
  }

  #broke(message) {
    if (this.#state === "connected") this.#recover(message);
  }

  /** An event of the model, or of somebody else's channel: anything. */
  #told(data) {
    let event = null;
    try {
      event = JSON.parse(data);
    } catch {
      // shown as it is
    }
    if (typeof event?.type !== "string")
      event = { type: "(no event)", data: event ?? String(data) };
    this.#tell("event", { direction: "received", event, bytes: data.length ?? data.byteLength });
    const [, what] = /^output_audio_buffer\.(\w+)$/.exec(event.type) ?? [];
    if (what) this.speaking = what === "started";
    if (what && this.#state === "connected") {
      const message = this.speaking ? "The other side is speaking." : "Listening to you.";
      this.#tell("state", { state: this.#state, message });
    }
    if (event.type !== "error" || String(event.error?.event_id).startsWith(UNASKED)) return;
    this.#tell("trouble", event.error?.message ?? "The other side reports an error.");
  }

  #heard(peer, track) {
    this.#tell("track", track);
    track.addEventListener("unmute", () => peer === this.#peer && this.#mark("first_audio"), {
      once: true,
    });
    this.#unwatch();
    this.#unwatch = watchForSilence(() => peer.received(), {
      first: () => this.#mark("first_audio"),
      silent: () => this.#broke("It went silent. Finding another way…"),
    });
  }

  #recover(message) {
    if (this.#over || !this.#peer) return Promise.resolve();
    this.#recovery ??= this.#mend(message).finally(() => (this.#recovery = null));
    return this.#recovery;
  }

  async #mend(message) {
    const begun = performance.now();
    this.#say("recovering", message);
    const saved = await recover({
      placed: () => this.#location !== null,
      over: () => this.#over,
      restart: (attempt) => this.#restartOnce(attempt),
      anew: () => this.#anew(),
      flows: () => this.#flows(),
      lost: (error) => this.#lost(error),
    });
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    if (saved) this.#say("connected", `Connected again after ${seconds} s. Speak.`);
    else this.#end("failed", "The call could not be saved. Press Talk to begin again.");
  }

  async #restartOnce(attempt) {
    if (attempt > 1) this.#say("recovering", `Finding another way, attempt ${attempt}…`);
    this.#note("restart", { attempt });
    const offer = await this.#peer.offer({ iceRestart: true });
    const answer = await server.restart(this.#location, offer);
    if (this.#over) return;
    await this.#peer.accept(answer);
    this.restarts++;
  }

  async #anew() {
    this.#say("recovering", "Beginning the call anew…");
    this.#leave();
    this.#begin(performance.now());
    await this.#connect();
  }

  /** Whether the call at the server is gone for good. Ends it here too where it was ended there. */
  async #lost(error) {
    if (FORBIDDEN.includes(error.status)) this.#end("failed", error.message, error);
    if (this.#over || !this.#location || !GONE.includes(error.status)) return false;
    if (error.status === ENDED && (await this.#ended())) return false;
    this.#location = null;
    return true;
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

  async #flows() {
    const deadline = performance.now() + HEALED_MS;
    const before = await this.#peer.received();
    while (performance.now() < deadline && !this.#over) {
      await sleep(50);
      if ((await this.#peer.received()) > before) return true;
    }
    return false;
  }
}
