// Who said what, out of the events of a Realtime session. Pure: events in, turns out.
// A turn: {id, who, text, heard, state, note}. `who` is user, agent or tool, or page for a seam
// between two servers; `state` is speaking, writing, done or gone; `heard` is as much of `text` as
// was played before somebody interrupted, null where nobody did.

const MOST_TURNS = 200;
const NO_TRANSCRIPT = "[no transcript]"; // of an item that was kept without words
const RESTORED = /^(session|conversation\.item)\./; // what comes before anything new is said

export class Transcript {
  #turns = new Map();
  #responses = new Map(); // of a response: its turns, while it goes on
  #names = new Map(); // of a restored item: the id of the turn that it was before
  #before = null; // turns that restored items may be, in order; null while none come
  #seams = 0;

  get turns() {
    return [...this.#turns.values()];
  }

  clear() {
    this.#turns.clear();
    this.#responses.clear();
    this.#names.clear();
    this.#before = null;
  }

  /** Another server has the call now, as `text` says; with `restored` it says again, as items of
   * its own, what it knows of the turns so far. The turns that this changed. */
  seam(text, restored) {
    const open = this.turns.filter(({ state }) => state !== "done");
    for (const turn of open) Object.assign(turn, { state: "done", note: turn.note || "cut off" });
    this.#responses.clear();
    this.#before = restored ? this.turns.filter(({ who }) => who !== "page") : null;
    const id = `seam_${++this.#seams}`;
    return [...open, Object.assign(this.#turn(id, "page"), { text, state: "done" })];
  }

  /** Take an event that was received. The turns that it changed. */
  hear(event) {
    if (!RESTORED.test(event.type)) this.#before = null;
    const changed = [this.#hear(event)].flat();
    while (this.#turns.size > MOST_TURNS) changed.push(this.#forget(this.turns[0].id));
    return changed.filter(Boolean);
  }

  #hear(event) {
    const { type, response_id } = event;
    const id = this.#names.get(event.item_id) ?? event.item_id;
    switch (type) {
      case "input_audio_buffer.speech_started":
        return this.#turn(id, "user");
      case "input_audio_buffer.speech_stopped":
        return this.#change(id, { state: "writing" });
      case "conversation.item.added":
      case "response.output_item.added":
        return this.#item(this.#known(event.item), response_id);
      case "conversation.item.done":
        return this.#item(this.#known(event.item), response_id, "done");
      case "conversation.item.input_audio_transcription.delta":
        return this.#write(this.#turn(id, "user"), event.delta);
      case "conversation.item.input_audio_transcription.completed":
        return this.#finish(this.#turn(id, "user"), event.transcript);
      case "conversation.item.input_audio_transcription.failed":
        return this.#change(id, { state: "done", note: event.error?.message ?? "not transcribed" });
      case "response.output_text.delta":
      case "response.output_audio_transcript.delta":
        return this.#write(this.#reply(id, response_id), event.delta);
      case "response.output_text.done":
      case "response.output_audio_transcript.done":
        return this.#finish(this.#reply(id, response_id), event.text ?? event.transcript);
      case "conversation.item.truncated":
        return this.#cut(id, event.audio_end_ms);
      case "conversation.item.retrieved":
        return this.#kept(this.#known(event.item));
      case "conversation.item.deleted":
        return this.#forget(id);
      case "response.done":
        return this.#ended(event.response ?? {});
      default:
        return null;
    }
  }

  /** The turn of an item; made when it is new and `who` is told. */
  #turn(id, who) {
    if (typeof id !== "string") return null;
    if (!this.#turns.has(id) && who) {
      this.#turns.set(id, { id, who, text: "", heard: null, state: "speaking", note: "" });
    }
    return this.#turns.get(id) ?? null;
  }

  #change(id, values) {
    const turn = this.#turns.get(id);
    return turn ? Object.assign(turn, values) : null;
  }

  #reply(id, response_id) {
    const turn = this.#turn(id, "agent");
    if (turn && response_id) {
      this.#responses.set(response_id, (this.#responses.get(response_id) ?? new Set()).add(turn));
    }
    return turn;
  }

  /** `item` under the name of the turn that it was on the server before, if it was one. Turns and
   * items have one order; either may miss some. */
  #known(item) {
    if (!item || this.#turns.has(item.id)) return item;
    const at = this.#before?.findIndex((turn) => same(turn, item)) ?? -1;
    if (at >= 0 && !this.#names.has(item.id)) {
      this.#names.set(item.id, this.#before[at].id);
      this.#before = this.#before.slice(at + 1);
    }
    return { ...item, id: this.#names.get(item.id) ?? item.id };
  }

  /** What the conversation kept of a turn that is shown: no more than was heard. */
  #restored(turn, words) {
    const cut = words !== turn.text && turn.text.startsWith(words);
    return cut ? Object.assign(turn, { heard: words }) : turn;
  }

  /** An item as it stands in the conversation. */
  #item(item, response_id, state) {
    if (item?.type === "function_call") return this.#called(item);
    if (item?.type !== "message" || item.role === "system") return null;
    const mine = item.role === "user";
    const shown = this.#before && this.#turns.get(item.id);
    if (shown) return this.#restored(shown, written(item));
    const turn = mine ? this.#turn(item.id, "user") : this.#reply(item.id, response_id);
    const text = written(item);
    if (!turn) return null;
    if (text && turn.heard === null) turn.text = text;
    if (state ?? (mine && text)) turn.state = "done";
    return turn;
  }

  #called({ id, name, arguments: given }) {
    const turn = this.#turn(id, "tool");
    return turn && Object.assign(turn, { text: called({ name, arguments: given }), state: "done" });
  }

  #write(turn, delta) {
    if (!turn || turn.heard !== null) return null; // of what was cut already
    return Object.assign(turn, { text: turn.text + (delta ?? ""), state: "writing" });
  }

  #finish(turn, text) {
    if (!turn) return null;
    return Object.assign(turn, {
      state: "done",
      text: turn.heard === null ? (text ?? turn.text) : turn.text,
    });
  }

  #cut(id, end_ms) {
    const turn = this.#turn(id, "agent");
    if (!turn) return null;
    const note = `interrupted after ${(Number(end_ms) / 1000).toFixed(1)} s`;
    return Object.assign(turn, { heard: turn.text, note, state: "done" });
  }

  /** What the conversation keeps of a turn that was cut. */
  #kept(item) {
    const turn = this.#turns.get(item?.id);
    if (!turn || turn.heard === null) return null;
    const heard = written(item);
    return Object.assign(turn, { heard, text: turn.text.startsWith(heard) ? turn.text : heard });
  }

  #forget(id) {
    const turn = this.#turns.get(id);
    this.#turns.delete(id);
    for (const [name, of] of this.#names) if (of === id) this.#names.delete(name);
    return turn ? Object.assign(turn, { state: "gone" }) : null;
  }

  #ended({ id, status, status_details: why }) {
    const turns = [...(this.#responses.get(id) ?? [])].filter((turn) => turn.state !== "gone");
    this.#responses.delete(id);
    for (const turn of turns) {
      turn.state = "done";
      if (status === "cancelled") turn.note ||= "interrupted";
      if (status === "failed") turn.note = why?.error?.message ?? "failed";
      if (status === "incomplete") turn.note = `not finished: ${why?.reason ?? "no reason given"}`;
    }
    return turns;
  }
}

function called({ name, arguments: given }) {
  return `${name}(${given ?? ""})`;
}

/** Whether `item` may be what `turn` shows: of the same speaker, and the words that were heard. */
function same({ who, text, heard }, item) {
  if (item.type === "function_call") return who === "tool" && text === called(item);
  if (item.type !== "message" || who !== (item.role === "user" ? "user" : "agent")) return false;
  const words = written(item);
  if (words === NO_TRANSCRIPT) return text === "";
  return heard === null ? words === text : text.startsWith(words);
}

function written({ content }) {
  const parts = Array.isArray(content) ? content : [];
  return parts
    .map((part) => part.text ?? part.transcript)
    .filter(Boolean)
    .join("\n");
}
