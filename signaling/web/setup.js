// How long each step of the set-up took, as bars on one axis.

import { $, make, write } from "./dom.js";

// of each phase: its name, and the one that it waits for
const PHASES = {
  microphone: ["Microphone", "click"],
  offer: ["Offer", "microphone"],
  answer: ["Answer", "offer"],
  ice: ["ICE", "answer"],
  dtls: ["DTLS", "ice"],
  channel: ["Channel", "dtls"],
  first_audio: ["First audio", "dtls"],
};
const MOST_OF_ASKING = 0.3; // of the axis: a person who is asked takes seconds, the rest is in ms

export class Setup {
  #rows = new Map();

  constructor() {
    for (const [phase, [name]] of Object.entries(PHASES)) {
      const [bar, took] = [make("i", { "aria-hidden": "true" }), make("b", {}, "–")];
      const row = make("li", { "data-phase": phase }, make("span", {}, name), bar, took);
      this.#rows.set(phase, { row, bar, took });
      $("phases").append(row);
    }
  }

  /** `timeline` of a call: moments in ms, null where not reached. */
  draw(timeline) {
    const { click, microphone } = timeline;
    const last = Math.max(...Object.keys(PHASES).map((phase) => timeline[phase] ?? click));
    const asked = microphone - click;
    const rest = Math.max(last - microphone, 1);
    const shown = Math.min(asked, (rest * MOST_OF_ASKING) / (1 - MOST_OF_ASKING)); // of asking
    const place = (at) =>
      at <= microphone ? ((at - click) * shown) / (asked || 1) : shown + at - microphone;
    for (const [phase, { row, bar, took }] of this.#rows) {
      const [from, to] = [timeline[PHASES[phase][1]], timeline[phase]];
      const known = from !== null && to !== null;
      const begin = known ? place(Math.min(from, to)) / (shown + rest) : 0;
      const share = known ? Math.max(place(to) / (shown + rest) - begin, 0.008) : 0;
      bar.style.setProperty("--from", Math.min(begin, 1 - share).toFixed(4));
      bar.style.setProperty("--share", share.toFixed(4));
      row.toggleAttribute("data-cut", phase === "microphone" && shown < asked);
      write(took, known ? `${Math.round(Math.max(to - from, 0))} ms` : "–");
    }
    write($("setup-text"), sentence(timeline));
  }
}

function sentence({ click, microphone, first_audio }) {
  if (first_audio === null) return "Waiting for the first audio…";
  const [all, machine] = [first_audio - click, first_audio - microphone].map(Math.round);
  return `First audio ${all} ms after the click, ${machine} ms after the microphone was there.`;
}
