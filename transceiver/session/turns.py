"""What the client says: the open turn, its place in the conversation, its transcript. Pure."""

from typing import Any

from transceiver.events import Event, NewId
from transceiver.session import items
from transceiver.session.commands import Drop, Output
from transceiver.session.conversation import Conversation
from transceiver.session.fields import Refusal

MAX_AWAITED = 100  # transcripts
MAX_TRANSCRIPT = 64 * 1024  # characters


class Turns:
    """A turn has its item's id from the start of speech. Its end commits it; speech that resumes
    goes on under the same id, and is not committed again."""

    def __init__(self, conversation: Conversation, new_id: NewId, recognises: bool) -> None:
        self._conversation = conversation
        self._new_id = new_id
        self._recognises = recognises
        self._open: str | None = None  # item id of the turn that is being spoken
        self._last: str | None = None  # of the last one that was
        self._awaited: dict[str, None] = {}  # item ids without transcript, oldest first
        self._refused: str | None = None  # the last of which the client was told that it gets none

    @property
    def item_id(self) -> str | None:
        """Of the turn that is being spoken."""
        return self._open

    def started(self, start_ms: int) -> list[Output]:
        return self._start(self._new_id("item"), start_ms)

    def resumed(self, start_ms: int) -> list[Output]:
        """The last turn goes on."""
        return self._start(self._last or self._new_id("item"), start_ms)

    def stopped(self, end_ms: int) -> tuple[list[Output], str | None]:
        """Also the id of the turn's item; None if there was no turn."""
        item_id, self._open = self._open, None
        if item_id is None:
            return [], None
        kind = "input_audio_buffer.speech_stopped"
        stopped: Event = {"type": kind, "audio_end_ms": max(end_ms, 0), "item_id": item_id}
        return [stopped, *self._commit(item_id)], item_id

    def forget(self) -> None:
        """What was said is no turn."""
        self._open = None

    def next_item_id(self) -> str:
        """For a turn that the client commits: of the open one, if that was not committed before."""
        if self._open is None or self._open == self._last:
            return self._new_id("item")
        return self._open

    def committed(self, item_id: str, heard_ms: int) -> list[Output]:
        """The client ended a turn. Raises `Refusal` if nothing was heard."""
        if heard_ms <= 0:
            detail = "nothing was heard since the last turn: speak before you commit"
            raise Refusal("input_audio_buffer_commit_empty", detail)
        self._open = None
        return self._commit(item_id)

    def timed_out(self, start_ms: int, end_ms: int) -> tuple[list[Output], str]:
        """Nobody spoke: the silence is a turn."""
        item_id = self._new_id("item")
        place = {"audio_start_ms": start_ms, "audio_end_ms": end_ms, "item_id": item_id}
        triggered: Event = {"type": "input_audio_buffer.timeout_triggered", **place}
        return [triggered, *self._commit(item_id)], item_id

    def await_transcript(self, item_id: str) -> list[Output]:
        """The client wants to read what was said; at once an error if nobody here listens."""
        if self._recognises:
            self._awaited[item_id] = None
            if len(self._awaited) > MAX_AWAITED:
                del self._awaited[next(iter(self._awaited))]
            return []
        if self._refused == item_id:
            return []
        self._refused = item_id
        return [_failed(item_id, "no_recogniser", "nothing here recognises speech")]

    def transcribed(self, item_id: str, transcript: str | None, seconds: float) -> list[Output]:
        """None: it could not be understood."""
        if item_id not in self._awaited:
            return []
        del self._awaited[item_id]
        if transcript is None:
            return [_failed(item_id, "transcription_failed", "the speech was not recognised")]
        said = transcript[:MAX_TRANSCRIPT]
        if item_id in self._conversation:
            item = self._conversation.get(item_id)
            if items.is_spoken_turn(item):
                self._conversation.replace(items.transcribed(item, said))
        usage = {"type": "duration", "seconds": max(seconds, 0.0)}
        return [_transcription(item_id, "completed", transcript=said, usage=usage)]

    def _start(self, item_id: str, start_ms: int) -> list[Output]:
        self._open = item_id
        kind = "input_audio_buffer.speech_started"
        return [{"type": kind, "audio_start_ms": max(start_ms, 0), "item_id": item_id}]

    def _commit(self, item_id: str) -> list[Output]:
        """Nothing for a turn that was resumed: it has been."""
        if item_id == self._last:
            return []
        self._last = item_id
        before = self._conversation.last_id
        item = items.spoken_turn(item_id)
        dropped = self._conversation.add(item)
        added = {"previous_item_id": before, "item": item}
        return [
            {
                "type": "input_audio_buffer.committed",
                "item_id": item_id,
                "previous_item_id": before,
            },
            {"type": "conversation.item.added", **added},
            {"type": "conversation.item.done", **added},
            *map(Drop, dropped),
        ]


def _transcription(item_id: str, what: str, **fields: Any) -> Event:
    kind = f"conversation.item.input_audio_transcription.{what}"
    return {"type": kind, "item_id": item_id, "content_index": 0, **fields}


def _failed(item_id: str, code: str, message: str) -> Event:
    error = {"type": "transcription_error", "code": code, "message": message}
    return _transcription(item_id, "failed", error=error)
