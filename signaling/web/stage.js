// The stage: the round button, what the call is doing in words, what is wrong, mute and hang-up.
// `wishes` has what the person may want: talk(), hangUp(), mute(), hold(held), useKey(text).

import { $, make, words, write } from "./dom.js";

const ACTIVE = ["asking", "calling", "connected", "recovering"];

export class Stage {
  constructor(wishes) {
    $("talk").addEventListener("click", () => this.idle && wishes.talk());
    $("hangup").addEventListener("click", wishes.hangUp);
    $("mute").addEventListener("click", wishes.mute);
    $("key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      wishes.useKey($("key").value);
    });
    document.addEventListener("keydown", ({ key }) => {
      if (key === "Escape" && ["asking", "calling"].includes(this.state)) wishes.hangUp();
    });
    this.#holding(wishes.hold);
  }

  get state() {
    return document.body.dataset.state;
  }

  get idle() {
    return !ACTIVE.includes(this.state);
  }

  /** `sound`: {muted, holds, held, speaking}. */
  show(state, message, sound) {
    const before = this.state;
    document.body.dataset.state = state;
    write($("status"), message);
    const active = ACTIVE.includes(state);
    $("hangup").disabled = !active;
    $("mute").disabled = !active || state === "asking";
    this.draw(sound);
    document.title = active ? `${message} · Ferryline` : "Ferryline";
    if (before === "idle" && state === "asking") $("hangup").focus();
    if (before === "calling" && state === "connected" && sound.holds) $("talk").focus();
    if (ACTIVE.includes(before) && !active && !this.asksKey) $("talk").focus();
  }

  draw({ muted, holds, held, speaking }) {
    const active = ACTIVE.includes(this.state);
    $("talk").disabled =
      this.state === "blocked" || (active && !(holds && this.state === "connected"));
    $("mute").setAttribute("aria-pressed", String(muted));
    write($("mute"), muted ? "Unmute" : "Mute");
    document.body.toggleAttribute("data-muted", active && (muted || (holds && !held)));
    const talking = holds ? (held ? "Release to end" : "Hold to talk") : "Listening";
    const connected = speaking && !held ? "Speaking" : talking;
    const label = { asking: "Asking…", calling: "Calling…", connected, recovering: "One moment…" };
    write($("talk-label"), (muted && active ? "Muted" : label[this.state]) ?? "Talk");
  }

  /** Say what is wrong and what to do; nothing without `text`. */
  notice(text, steps = []) {
    const box = $("notice");
    box.hidden = !text;
    if (!steps.length) return write(box, text ?? "");
    const list = make("ul", {}, ...steps.map((step) => make("li", {}, ...words(step))));
    box.replaceChildren(make("p", {}, ...words(text)), list);
  }

  get asksKey() {
    return !$("key-form").hidden;
  }

  askKey(wanted) {
    $("key-form").hidden = !wanted;
    $("key").value = "";
    if (wanted) $("key").focus();
  }

  /** Push to talk: by pointer or keyboard, until it is let go wherever that happens. */
  #holding(hold) {
    const button = $("talk");
    const down = () => !this.idle && hold(true);
    const up = () => hold(false);
    button.addEventListener("pointerdown", down);
    button.addEventListener(
      "keydown",
      ({ key, repeat }) => [" ", "Enter"].includes(key) && !repeat && down(),
    );
    button.addEventListener("keyup", up);
    button.addEventListener("blur", up);
    button.addEventListener("contextmenu", (event) => !this.idle && event.preventDefault()); // a long press
    for (const type of ["pointerup", "pointercancel"]) addEventListener(type, up);
  }
}
