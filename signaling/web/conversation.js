// The conversation as it is spoken and written, and the line to write into.
// Finished turns are read out by screen readers; the letters of a growing one are not.

import { UNASKED } from "./call.js";
import { $, make, write } from "./dom.js";
import { choices } from "./storage.js";
import { Transcript } from "./transcript.js";

const TRANSCRIBE = "transcribe";
const NAMES = { user: "You", agent: "Answer", tool: "Tool", page: "Page" };
const NEAR_PX = 40; // of the end: whoever scrolled up to read stays there

export class Conversation {
  #transcript = new Transcript();
  #rows = new Map();
  #send = () => false;
  #opened = false;

  constructor() {
    $("write").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#write($("words").value.trim());
    });
    $("transcribe").checked = choices.get(TRANSCRIBE) === "1";
    $("transcribe").addEventListener("change", () => {
      choices.set(TRANSCRIBE, $("transcribe").checked ? "1" : null);
      this.#askTranscripts();
    });
  }

  /** A new call: what was said before is gone. `send(event)` is false while it cannot be said. */
  begin(send) {
    this.#send = send;
    this.#transcript.clear();
    this.#rows.clear();
    $("turns").replaceChildren();
    write($("said"), "");
  }

  /** The channel is open, or it is not. */
  open(open) {
    if (open === this.#opened) return;
    this.#opened = open;
    $("words").disabled = !open;
    $("write").querySelector("button").disabled = !open;
    if (open && $("transcribe").checked) this.#askTranscripts();
  }

  /** What is shown. */
  get turns() {
    return this.#transcript.turns.map((turn) => ({ ...turn }));
  }

  /** Another server goes on with the call; `restored`: it knows what was said. */
  seam(restored) {
    const text = restored
      ? "Connected again on another server"
      : "A new conversation: the other side does not know what was said above";
    this.#show(this.#transcript.seam(text, restored));
  }

  /** An event that was received. */
  hear(event) {
    const turns = this.#transcript.hear(event);
    if (!turns.length) return;
    this.#show(turns);
    // the conversation knows how much of a cut reply was heard
    if (event.type === "conversation.item.truncated") {
      const about = { event_id: `${UNASKED}retrieve`, item_id: event.item_id };
      this.#send({ type: "conversation.item.retrieve", ...about });
    }
  }

  #show(turns) {
    const log = $("transcript");
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_PX;
    for (const turn of turns) this.#draw(turn);
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  #draw(turn) {
    const row = this.#rows.get(turn.id) ?? this.#add(turn);
    if (turn.state === "gone") {
      row.item.remove();
      this.#rows.delete(turn.id);
      return;
    }
    const heard = turn.heard ?? turn.text;
    row.item.dataset.state = turn.state;
    write(row.heard, heard || (turn.text ? "" : placeholder(turn)));
    row.item.toggleAttribute("data-wordless", !turn.text);
    write(row.unheard, turn.text.slice(heard.length));
    row.unheard.hidden = !row.unheard.textContent;
    write(row.note, turn.note);
    row.note.hidden = !turn.note;
    const said =
      turn.text && turn.state === "done" && `${NAMES[turn.who]}: ${heard} ${turn.note}`.trim();
    if (said && said !== row.said) write($("said"), (row.said = said));
  }

  #add(turn) {
    const [heard, unheard, note] = [make("span"), make("s"), make("small")];
    const item = make(
      "li",
      { "data-who": turn.who },
      make("b", {}, NAMES[turn.who]),
      make("p", {}, heard, unheard),
      note,
    );
    const row = { item, heard, unheard, note, said: null };
    this.#rows.set(turn.id, row);
    $("turns").append(item);
    return row;
  }

  #write(text) {
    if (!text) return;
    const content = [{ type: "input_text", text }];
    const item = { type: "message", role: "user", content };
    if (!this.#send({ type: "conversation.item.create", item })) return;
    this.#send({ type: "response.create" });
    $("words").value = "";
  }

  /** Whether what is said here is put into words is for the other side to say. */
  #askTranscripts() {
    const transcription = $("transcribe").checked ? { model: "whisper-1" } : null;
    const session = { type: "realtime", audio: { input: { transcription } } };
    this.#send({ type: "session.update", session });
  }
}

function placeholder({ who, state }) {
  if (state === "done") return "spoken";
  return who === "user" && state === "writing" ? "one moment…" : "speaking…";
}
