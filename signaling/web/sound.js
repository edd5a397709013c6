// The sound controls: which microphone, which speaker, how loud, and the bars that move.

import { $, make } from "./dom.js";
import { Meter } from "./meter.js";
import { devices } from "./microphone.js";
import { choices } from "./storage.js";

const SPEAKER = "speaker";
const VOLUME = "volume";
const ENDS = ["in", "out"];
const TELL_MS = 500; // for screen readers, which need it less often

export class Sound {
  #meter = new Meter();
  #player = $("player");
  #complain;
  #held = false; // the browser waits for a click
  #drawn = null; // of the bars: the next time, while there is something to draw
  #told = null;

  /** `complain(text)`: something about the sound needs the person. */
  constructor(microphone, complain) {
    this.#complain = complain;
    const speakers = "setSinkId" in HTMLMediaElement.prototype;
    $("speaker").hidden = !speakers;
    document.querySelector('label[for="speaker"]').hidden = !speakers;
    $("speaker").addEventListener("change", () => this.#speak($("speaker").value));
    $("volume").addEventListener("input", () => this.#loud($("volume").value));
    this.#loud(choices.get(VOLUME) ?? 100);
    if (speakers && choices.get(SPEAKER)) this.#speak(choices.get(SPEAKER));
    microphone.addEventListener("devices", () => this.list(microphone.chosen));
    this.list(microphone.chosen);
    addEventListener("click", () => this.#held && this.#start());
  }

  /** Offer the devices there are. Their names are known once a microphone was allowed. */
  async list(chosen) {
    fill($("microphone"), await devices("audioinput"), chosen);
    fill($("speaker"), await devices("audiooutput"), choices.get(SPEAKER) ?? "");
  }

  /** Show the level of what is said; of another track from now on. */
  said(track) {
    this.#meter.follow("in", track);
    this.#drawn ??= requestAnimationFrame(() => this.#draw());
    this.#told ??= setInterval(() => this.#tell(), TELL_MS);
  }

  play(track) {
    this.#player.srcObject = new MediaStream([track]);
    this.#start();
    this.#meter.follow("out", track);
  }

  close() {
    this.#meter.close();
    this.#player.srcObject = null;
    this.#held = false;
    cancelAnimationFrame(this.#drawn);
    clearInterval(this.#told);
    this.#show();
    this.#tell();
    this.#drawn = this.#told = null;
  }

  async #start() {
    try {
      await this.#player.play();
      if (this.#held) this.#complain("");
      this.#held = false;
    } catch (error) {
      if (error.name !== "NotAllowedError") return; // another track took its place, or none
      if (!this.#held)
        this.#complain("The browser holds the sound back. Click anywhere to hear it.");
      this.#held = true;
    }
  }

  async #speak(id) {
    try {
      await this.#player.setSinkId(id);
      choices.set(SPEAKER, id);
    } catch (error) {
      choices.set(SPEAKER, null);
      $("speaker").value = "";
      this.#complain(
        `That speaker cannot be used (${error.message}). You hear it on the system's.`,
      );
    }
  }

  #loud(percent) {
    $("volume").value = percent;
    this.#player.volume = $("volume").value / 100;
    choices.set(VOLUME, $("volume").value);
  }

  #draw() {
    this.#show();
    this.#drawn = requestAnimationFrame(() => this.#draw());
  }

  #show() {
    const [said, heard] = ENDS.map((end) => this.#meter.level(end));
    $("level-in").style.setProperty("--level", said.toFixed(3));
    $("level-out").style.setProperty("--level", heard.toFixed(3));
    $("talk").style.setProperty("--level", Math.max(said, heard).toFixed(3));
  }

  #tell() {
    for (const end of ENDS) {
      $(`level-${end}`).setAttribute("aria-valuenow", Math.round(this.#meter.level(end) * 100));
    }
  }
}

function fill(select, found, chosen) {
  const options = [{ id: "", name: "The system's choice" }, ...found];
  const same = options.map(({ id, name }) => id + name).join();
  if (select.dataset.options !== same) {
    select.replaceChildren(...options.map(({ id, name }) => make("option", { value: id }, name)));
    select.dataset.options = same;
  }
  select.value = options.some(({ id }) => id === chosen) ? chosen : "";
}
