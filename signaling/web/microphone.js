// The microphone: asking for it, which one (remembered), and whether it is heard just now.
// Tells by events: `devices` (they changed) and `lost` (the one in use went away).

import { choices } from "./storage.js";

const DEVICE = "microphone";
const RAW = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
const GONE = ["OverconstrainedError", "NotFoundError"]; // of a remembered one

export class Microphone extends EventTarget {
  track = null;
  muted = false;
  holds = false; // push to talk: silent unless held
  held = false;
  #ours = false; // we asked for it, so we stop it
  #raw;

  /** `raw`: without echo cancellation, noise suppression and gain control. */
  constructor(raw) {
    super();
    this.#raw = raw;
    const changed = () => this.dispatchEvent(new Event("devices"));
    navigator.mediaDevices?.addEventListener("devicechange", changed);
  }

  static get available() {
    return Boolean(navigator.mediaDevices?.getUserMedia); // hidden on insecure pages
  }

  get chosen() {
    return choices.get(DEVICE) ?? "";
  }

  get silent() {
    return this.muted || (this.holds && !this.held);
  }

  /** Open what is given (a track, a stream, constraints), else the chosen one. */
  async open(given) {
    this.close();
    const stream = given instanceof MediaStreamTrack ? new MediaStream([given]) : given;
    this.#ours = !(stream instanceof MediaStream);
    this.#take((this.#ours ? await this.#ask(stream) : stream).getAudioTracks()[0]);
  }

  /** Use another one from now on; the old one if the other cannot be had. */
  async choose(id) {
    choices.set(DEVICE, id);
    if (!this.track) return;
    const [old, ours] = [this.track, this.#ours];
    const stream = await this.#ask();
    this.#ours = true;
    this.#take(stream.getAudioTracks()[0]);
    if (ours) old.stop();
  }

  /** Make the track sound, or not, as muting and push to talk have it. */
  apply() {
    if (this.track) this.track.enabled = !this.silent;
  }

  close() {
    if (this.#ours) this.track?.stop();
    this.track = null;
    this.held = false;
  }

  #take(track) {
    this.track = track;
    this.apply();
    track.addEventListener("ended", () => {
      if (track === this.track) this.dispatchEvent(new Event("lost"));
    });
    this.dispatchEvent(new Event("devices")); // they have names from now on
  }

  async #ask(constraints) {
    const wanted = constraints ?? { ...(this.#raw ? RAW : {}) };
    const id = this.chosen;
    const ask = (audio) => navigator.mediaDevices.getUserMedia({ audio });
    if (constraints || !id) return ask(wanted);
    try {
      return await ask({ ...wanted, deviceId: { exact: id } });
    } catch (error) {
      if (!GONE.includes(error.name)) throw error;
      choices.set(DEVICE, null);
      return ask(wanted);
    }
  }
}

/** Devices of a kind (`audioinput`, `audiooutput`): `{id, name}`, unnamed before one was allowed. */
export async function devices(kind) {
  const all = (await navigator.mediaDevices?.enumerateDevices?.().catch(() => [])) ?? [];
  return all
    .filter((device) => device.kind === kind && device.deviceId && device.deviceId !== "default")
    .map(({ deviceId: id, label }, at) => ({ id, name: label || `Device ${at + 1}` }));
}
