// The events of the call, both ways, and what this page did itself: to filter, open and copy.
// Bounded; drawn a few times a second at most, however fast they come.

import { $, make, write } from "./dom.js";

const MOST = 500;
const DRAW_MS = 150;
const PREVIEW = 120; // characters of an event's JSON beside its type
const NAMES = { sent: ["↑", "sent"], received: ["↓", "received"], page: ["·", "by this page"] };

export class Journal {
  #entries = [];
  #waiting = []; // not drawn yet
  #types = new Set();
  #began = performance.now();
  #timer = null;
  #paused = false;

  constructor() {
    $("events-filter").addEventListener("input", () => this.#redraw());
    $("events-direction").addEventListener("change", () => this.#redraw());
    $("events-pause").addEventListener("click", () => this.#pause(!this.#paused));
    $("events-copy").addEventListener("click", () => this.#copy());
    $("events-clear").addEventListener("click", () => this.clear());
  }

  /** A new call: times count from `at`, in `performance.now()` ms. */
  begin(at) {
    this.#began = at;
    this.clear();
  }

  clear() {
    this.#entries = [];
    this.#redraw();
  }

  /** `direction` sent | received | page, `event` the object, `bytes` its length or null. */
  add({ direction, event, bytes }) {
    const type = String(event.type);
    const entry = { direction, event, type, bytes, at: performance.now() - this.#began };
    this.#entries.push(entry);
    if (this.#entries.length > MOST) this.#entries.shift();
    this.#waiting.push(entry);
    if (this.#waiting.length > MOST) this.#waiting.shift();
    this.#know(type);
    this.#timer ??= setTimeout(() => this.#draw(), DRAW_MS);
  }

  #know(type) {
    if (this.#types.has(type) || this.#types.size >= MOST) return;
    this.#types.add(type);
    $("events-types").append(make("option", { value: type }));
  }

  #shown({ type, direction }) {
    const wanted = $("events-direction").value;
    return type.includes($("events-filter").value.trim()) && (!wanted || wanted === direction);
  }

  #draw() {
    this.#timer = null;
    this.#count();
    if (this.#paused) return;
    const list = $("events-list");
    const log = list.parentElement;
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    list.append(
      ...this.#waiting
        .splice(0)
        .filter((entry) => this.#shown(entry))
        .map(row),
    );
    while (list.childElementCount > MOST) list.firstElementChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  #redraw() {
    $("events-list").replaceChildren();
    this.#waiting = [...this.#entries];
    clearTimeout(this.#timer);
    const paused = this.#paused;
    this.#paused = false; // a filter works on what stands still, too
    this.#draw();
    this.#paused = paused;
  }

  #count() {
    const [all, shown] = [this.#entries.length, this.#entries.filter((e) => this.#shown(e)).length];
    const held = this.#paused ? `, ${this.#waiting.length} held back` : "";
    write(
      $("events-count"),
      all ? `${shown === all ? all : `${shown} of ${all}`}${held}` : "none yet",
    );
  }

  #pause(paused) {
    this.#paused = paused;
    $("events-pause").setAttribute("aria-pressed", String(paused));
    write($("events-pause"), paused ? "Go on" : "Pause");
    this.#draw();
  }

  /** One JSON object a line, of what the filter shows. */
  async #copy() {
    const lines = this.#entries
      .filter((entry) => this.#shown(entry))
      .map(({ at, direction, event }) =>
        JSON.stringify({ at_ms: Math.round(at), direction, event }),
      );
    const done = await navigator.clipboard?.writeText(lines.join("\n")).then(
      () => true,
      () => false,
    );
    write($("events-copy"), done ? "Copied" : "Not allowed");
    setTimeout(() => write($("events-copy"), "Copy"), 1500);
  }
}

function row({ direction, event, type, bytes, at }) {
  const [sign, meaning] = NAMES[direction];
  const summary = make(
    "summary",
    {},
    make("span", { class: "sign", "aria-hidden": "true" }, sign),
    make("span", { class: "unseen" }, `${meaning} `),
    make("span", { class: "at" }, `${(at / 1000).toFixed(2)} s`),
    make("code", {}, ...type.split(/(?<=[._])/).flatMap((part) => [part, make("wbr")])),
    make("span", { class: "preview" }, preview(event)),
    make("span", { class: "bytes" }, bytes === null ? "" : `${bytes} B`),
  );
  const details = make("details", { "data-direction": direction, "data-type": type }, summary);
  const open = () => details.append(make("pre", {}, JSON.stringify(event, null, 2)));
  details.addEventListener("toggle", open, { once: true });
  return make("li", {}, details);
}

function preview({ type, event_id, ...rest }) {
  const text = JSON.stringify(rest);
  return text === "{}" ? "" : text.slice(1, PREVIEW);
}
