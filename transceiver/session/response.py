"""The life of one response: its events, in the order in which clients expect them. Pure.

What is spoken is told when the client begins to hear it: until then transcript and end are held
back, so that speech that comes first still cancels a response that was made faster than it plays.
"""

from typing import Any

from transceiver.events import Event
from transceiver.session import items
from transceiver.session.commands import Cut, Drop, Output, Respond
from transceiver.session.conversation import Conversation
from transceiver.session.items import Item, Status
from transceiver.session.request import Request

MAX_WRITTEN = 64 * 1024  # characters of a reply; what comes behind them is left out

# Nothing here counts tokens, and clients add these up.
NO_USAGE = {
    "total_tokens": 0,
    "input_tokens": 0,
    "output_tokens": 0,
    "input_token_details": {"text_tokens": 0, "audio_tokens": 0, "cached_tokens": 0},
    "output_token_details": {"text_tokens": 0, "audio_tokens": 0},
}


class Response:
    """One item, or none if it ends before it has begun."""

    def __init__(
        self, response_id: str, item_id: str, request: Request, conversation: Conversation
    ) -> None:
        self.id = response_id
        self.item_id = item_id
        self.made = False  # completely; its end is held until it is heard
        self.abandoned = False  # it ends with `Replies.cut`
        self._request = request
        self._conversation = conversation
        self._item: Item | None = None  # once it has begun
        self._heard = not self.spoken  # the client reads it, or hears it
        self._written = ""
        self._told = 0  # characters of `_written`

    @property
    def spoken(self) -> bool:
        """By voice, not in text."""
        return self._request.modality == "audio"

    @property
    def holds_end(self) -> bool:
        """Complete, and not heard yet."""
        return self.made and not self._heard

    def create(self) -> list[Output]:
        request = self._request
        return [
            {"type": "response.created", "response": self._shown("in_progress", None, None)},
            {"type": "rate_limits.updated", "rate_limits": []},
            Respond(self.id, self.item_id, request.modality, request.turn_item_id, request.text),
        ]

    def begin(self) -> list[Output]:
        """The item and its part; nothing if they are there."""
        if self._item is not None:
            return []
        self._item = items.reply(self.item_id, [], "in_progress")
        outputs: list[Output] = [self._output_item("added")]
        if self._request.in_conversation:
            dropped = self._conversation.add(self._item)
            outputs += [self._conversation_item("added"), *map(Drop, dropped)]
        part = self._event("response.content_part.added", part=self._part(""))
        return [*outputs, part]

    def write(self, delta: str) -> list[Output]:
        """More of its text, or of the transcript of its voice."""
        self._written += delta[: MAX_WRITTEN - len(self._written)]
        return [*self.begin(), *self._tell()]

    def hear(self) -> list[Output]:
        """The client hears it from now on."""
        self._heard = True
        return self._tell()

    def end(
        self, status: str, details: dict[str, Any] | None = None, cut: Cut | None = None
    ) -> list[Output]:
        """With `cut` only as much was said as was heard of this item; it may be another's."""
        text = self._written
        if cut is not None and self.spoken:
            is_ours = cut.item_id == self.item_id
            text = items.heard_part(text, cut.heard_ms, cut.received_ms) if is_ours else ""
        done = self._shown(status, details, NO_USAGE)
        outputs: list[Output] = []
        if self._item is not None:
            outputs = self._end_item(text, "completed" if status == "completed" else "incomplete")
            done["output"] = [self._item]
        return [*outputs, {"type": "response.done", "response": done}]

    def _end_item(self, text: str, status: Status) -> list[Output]:
        part = items.reply_content(self._request.modality, text)
        self._item = items.reply(self.item_id, [part], status)
        self._conversation.replace(self._item)
        outputs: list[Output] = []
        if self.spoken:
            outputs += [
                self._event("response.output_audio.done"),
                self._event("response.output_audio_transcript.done", transcript=text),
            ]
        else:
            outputs.append(self._event("response.output_text.done", text=text))
        outputs.append(self._event("response.content_part.done", part=self._part(text)))
        outputs.append(self._output_item("done"))
        if self._request.in_conversation and self.item_id in self._conversation:
            outputs.append(self._conversation_item("done"))
        return outputs

    def _tell(self) -> list[Output]:
        """What was written since the last time, once the client hears it."""
        delta = self._written[self._told :]
        if not self._heard or not delta:
            return []
        self._told = len(self._written)
        kind = "output_audio_transcript" if self.spoken else "output_text"
        return [self._event(f"response.{kind}.delta", delta=delta)]

    def _event(self, kind: str, **fields: Any) -> Event:
        place = {"response_id": self.id, "item_id": self.item_id}
        return {"type": kind, **place, "output_index": 0, "content_index": 0, **fields}

    def _output_item(self, what: str) -> Event:
        kind = f"response.output_item.{what}"
        return {"type": kind, "response_id": self.id, "output_index": 0, "item": self._item}

    def _conversation_item(self, what: str) -> Event:
        before = self._conversation.before(self.item_id)
        kind = f"conversation.item.{what}"
        return {"type": kind, "previous_item_id": before, "item": self._item}

    def _part(self, text: str) -> dict[str, str]:
        if self.spoken:
            return {"type": "audio", "transcript": text}
        return {"type": "text", "text": text}

    def _shown(
        self, status: str, details: dict[str, Any] | None, usage: dict[str, Any] | None
    ) -> dict[str, Any]:
        request = self._request
        return {
            "id": self.id,
            "object": "realtime.response",
            "status": status,
            "status_details": details,
            "output": [],
            "conversation_id": self._conversation.id if request.in_conversation else None,
            "output_modalities": [request.modality],
            "max_output_tokens": request.max_output_tokens,
            "audio": {"output": request.audio},
            "usage": usage,
            "metadata": request.metadata,
        }
