// One conversation: its connection, its call at the server, and its recovery. Knows no page.
// Tells by events: `state` {state, message, error}, `track`, `timeline`, `trouble` (what the other
// side says is wrong) and `event` {direction: sent | received | page, event, bytes}.

import { Peer } from "./peer.js";
import { recover, sleep } from "./recovery.js";
import * as server from "./server.js";
import { watchForSilence } from "./silence.js";
import { read } from "./stats.js";
import { begun, stuck } from "./timeline.js";
import { verdict } from "./verdict.js";

const SETUP_MS = 15000;
const HEALED_MS = 3000; // audio has to be back so soon after a restart
export const UNASKED = "page_"; // begins the event_id of what no person has asked for

export class Call extends EventTarget {
  restarts = 0;
  resumes = 0; // on another server, with what was said
  speaking = false; // the other side, as it says itself
  timeline = {};
  ingress = null; // where the server sent us, and why
  steering = null;
  #track;
  #peer = null;
  #location = null;
  #state = "idle";
  #recovery = null;
  #how = "again"; // it was connected after a loss
  #unwatch = () => {};

  /** `clicked`: when it was asked for, in `performance.now()` ms. The microphone is there now. */
  constructor(track, clicked) {
    super();
    this.#track = track;
    this.timeline = begun(clicked);
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
      await this.#connect(server.create);
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
    const { restarts, resumes } = this;
    return { state: this.#state, restarts, resumes, ...figures };
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

  #mark(phase) {
    if (this.#over || this.timeline[phase] !== null) return;
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

  /** A connection of its own for the call that `place(offer)` begins. The one that is there stays
   * until the server has answered; then `placed` is told. */
  async #connect(place, placed = () => {}) {
    const peer = new Peer(this.#track, {
      phase: (phase) => this.#reached(phase),
      broken: () => this.#broke("The way broke. Finding another…"),
      gone: () => this.#broke("The connection closed. Asking why…"), // a restart tells
      message: (received) => this.#told(received),
      track: (track) => this.#heard(peer, track),
    });
    let created;
    try {
      const offer = await peer.offer();
      this.#mark("offer");
      created = await place(offer);
    } catch (error) {
      peer.close();
      throw error;
    }
    if (this.#over) {
      peer.close();
      return server.hangUp(created.location); // hung up meanwhile
    }
    placed();
    this.#take(peer, created);
    await peer.accept(created.answer);
    await Promise.race([peer.up, this.#deadline(created.answer)]);
  }

  #take(peer, { location, ingress, steering }) {
    this.#unwatch();
    this.#peer?.close();
    Object.assign(this, { ingress, steering, speaking: false });
    [this.#peer, this.#location] = [peer, location];
    this.#mark("answer");
  }

  async #deadline(answer) {
    await sleep(SETUP_MS);
    throw new Error(stuck(this.timeline, answer));
  }

  #reached(phase) {
    this.#mark(phase);
    const up = this.pc.connectionState === "connected";
    if (up && this.#state === "calling") this.#say("connected", "You are connected. Speak.");
  }

  #broke(message) {
    if (this.#state === "connected") this.#recover(message);
  }

  #told({ event, bytes }) {
    this.#tell("event", { direction: "received", event, bytes });
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
    const lost = performance.now();
    this.#say("recovering", message);
    const saved = await recover({
      placed: () => this.#location !== null,
      over: () => this.#over,
      restart: (attempt) => this.#restartOnce(attempt),
      resume: () => this.#resume(),
      anew: () => this.#anew(),
      flows: () => this.#flows(),
      lost: (step, error) => this.#lost(step, error),
    });
    const seconds = ((performance.now() - lost) / 1000).toFixed(1);
    if (saved) this.#say("connected", `Connected ${this.#how} after ${seconds} s. Speak.`);
    else this.#end("failed", "The call could not be saved. Press Talk to begin again.");
  }

  async #restartOnce(attempt) {
    if (attempt > 1) this.#say("recovering", `Finding another way, attempt ${attempt}…`);
    this.#note("restart", { attempt });
    this.#how = "again";
    const offer = await this.#peer.offer({ iceRestart: true });
    const answer = await server.restart(this.#location, offer);
    if (this.#over) return;
    await this.#peer.accept(answer);
    this.restarts++;
  }

  async #resume() {
    this.#say("recovering", "Taking the call up on another server…");
    this.timeline = begun(performance.now());
    const resume = (offer) => server.resume(this.#location, offer);
    await this.#connect(resume, () => {
      this.resumes++;
      this.#how = "again on another server";
      this.#note("resumed");
    });
  }

  async #anew() {
    this.#say("recovering", "Beginning the call anew…");
    this.#leave();
    this.timeline = begun(performance.now());
    this.#how = "anew";
    this.#note("anew");
    await this.#connect(server.create);
  }

  /** Whether this step cannot save the call. Ends it here too where it was ended there. */
  async #lost(step, error) {
    const { lost, over } = await verdict(step, error, this.#location);
    if (over?.state === "ended") this.#location = null; // nobody is left to be told
    if (over) this.#end(over.state, over.message, error);
    else if (lost && step === "resume") this.#location = null;
    return Boolean(lost);
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
