// Who said what, out of the events of a Realtime session. Pure: events in, turns out.
// A turn: {id, who, text, heard, state, note}. `who` is user, agent or tool; `state` is speaking,
// writing, done or gone; `heard` is as much of `text` as was played before somebody interrupted,
// null where nobody did.

const MOST_TURNS = 200;

export class Transcript {
  #turns = new Map();
  #responses = new Map(); // of a response: its turns, while it goes on

  get turns() {
    return [...this.#turns.values()];
  }

  clear() {
    this.#turns.clear();
    this.#responses.clear();
  }

  /** Take an event that was received. The turns that it changed. */
  hear(event) {
    const changed = [this.#hear(event)].flat();
    while (this.#turns.size > MOST_TURNS) changed.push(this.#forget(this.turns[0].id));
    return changed.filter(Boolean);
  }

  #hear(event) {
    const { type, item_id: id, response_id } = event;
    switch (type) {
      case "input_audio_buffer.speech_started":
        return this.#turn(id, "user");
      case "input_audio_buffer.speech_stopped":
        return this.#change(id, { state: "writing" });
      case "conversation.item.added":
      case "response.output_item.added":
        return this.#item(event.item, response_id);
      case "conversation.item.done":
        return this.#item(event.item, response_id, "done");
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
        return this.#kept(event.item);
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

  /** An item as it stands in the conversation. */
  #item(item, response_id, state) {
    if (item?.type === "function_call") return this.#called(item);
    if (item?.type !== "message" || item.role === "system") return null;
    const mine = item.role === "user";
    const turn = mine ? this.#turn(item.id, "user") : this.#reply(item.id, response_id);
    const text = written(item);
    if (!turn) return null;
    if (text && turn.heard === null) turn.text = text;
    if (state ?? (mine && text)) turn.state = "done";
    return turn;
  }

  #called({ id, name, arguments: given }) {
    const turn = this.#turn(id, "tool");
    return turn && Object.assign(turn, { text: `${name}(${given ?? ""})`, state: "done" });
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

function written({ content }) {
  const parts = Array.isArray(content) ? content : [];
  return parts
    .map((part) => part.text ?? part.transcript)
    .filter(Boolean)
    .join("\n");
}
