"""A Realtime session: events of the client in, events and commands out. Pure.

The owner of the audio carries out the commands, and tells what it hears and plays. Outputs take
effect in their order. OpenAI's general availability names only.
"""

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transceiver import events
from transceiver.events import Event, NewId
from transceiver.session import items
from transceiver.session.commands import Commit, Cut, Detect, Drop, Forget, Output
from transceiver.session.conversation import Conversation
from transceiver.session.fields import Refusal, invalid, number, text
from transceiver.session.replies import Claim, Replies
from transceiver.session.request import Request
from transceiver.session.settings import READ_ONLY, Settings
from transceiver.session.turns import Turns

_ARM = -math.inf  # the idle time begins; `timer` says when that is


class Session:
    """Methods never raise. What is told of a response that is over is ignored."""

    def __init__(
        self,
        asked: Mapping[str, Any],
        *,
        model: str,
        new_id: NewId,
        now: float,
        expires_at: int,
        responds: bool,
        recognises: bool,
        restored: Sequence[items.Item] = (),
    ) -> None:
        """`asked`: the session object of the call's maker. `expires_at` in unix seconds, shown.
        `responds`: responses can be made. `recognises`: `transcribed` will be told of each turn.
        `restored`: items of the conversation that this one carries on, as clients create them."""
        self._new_id = new_id
        self._begun = now
        self._responds = responds
        self._asked = asked
        self._restored = restored
        self._settings = Settings.initial(new_id("sess"), model, expires_at, detects=responds)
        self._conversation = Conversation(new_id("conv"))
        self._replies = Replies(self._conversation, new_id)
        self._turns = Turns(self._conversation, new_id, recognises)
        self._commits: dict[str, object] = {}  # item id: event id of a commit on its way
        self._had_reply = False
        self._idle_until = math.inf
        self._idle_from_ms = 0

    @property
    def turn_detection(self) -> dict[str, Any] | None:
        return self._settings.turn_detection

    @property
    def interrupts(self) -> bool:
        """Speech silences the reply."""
        return self._settings.interrupts

    @property
    def transcribes(self) -> bool:
        """The client wants to read what was said."""
        return self._settings.transcribes

    @property
    def settings(self) -> dict[str, Any]:
        """As `session.update` can set them again."""
        return {k: v for k, v in self._settings.shown.items() if k not in READ_ONLY}

    @property
    def items(self) -> list[items.Item]:
        """Of the conversation, in order."""
        return self._conversation.items()

    @property
    def turn_item_id(self) -> str | None:
        """Of the turn that is being spoken."""
        return self._turns.item_id

    @property
    def deadline(self) -> float:
        """When `timer` has work; -math.inf = now."""
        return self._idle_until

    def begin(self) -> list[Output]:
        """`session.created`, what is restored, and the first `Detect`."""
        refused: list[Output] = []
        try:
            self._settings = self._settings.updated(self._asked)
        except Refusal as refusal:
            refused = [_error(refusal, None)]
        created: Event = {"type": "session.created", "session": self._settings.shown}
        outputs: list[Output] = [created, *refused]
        for item in self._restored:
            with contextlib.suppress(Refusal):  # of an item that no client could have made
                outputs += self._create_item({"item": item})
        self._restored = ()
        return [*outputs, Detect(self.turn_detection)]

    def event(self, event: Event, now: float) -> list[Output]:
        """A client's event, any JSON object."""
        kind, event_id = event.get("type"), event.get("event_id")
        act = _ACTS.get(kind) if isinstance(kind, str) else None
        try:
            if not isinstance(kind, str):
                raise Refusal("unknown_event", "the event has no type: want text", "type")
            if act is None:
                raise Refusal("unknown_event", f"no event {kind[:64]!r} here", "type")
            return self._settle(act(self, event))
        except Refusal as refusal:
            return [_error(refusal, event_id)]

    def speech_started(self, start_ms: int) -> list[Output]:
        """Someone speaks: a turn, and the end of the reply if that may be interrupted. Positions
        are milliseconds of the input."""
        if self._turns.item_id is not None or self.turn_detection is None:
            return []
        outputs = self._turns.started(start_ms)
        if self.interrupts and (self._replies.active or self._replies.audible):
            outputs += self._replies.silence("turn_detected")
        return self._settle(outputs)

    def speech_resumed(self, start_ms: int) -> list[Output]:
        """The last turn had not ended after all, and nothing of its response is audible."""
        if self._turns.item_id is not None or self.turn_detection is None:
            return []
        outputs = self._turns.resumed(start_ms)
        return self._settle(outputs + self._replies.silence("turn_detected"))

    def speech_stopped(self, end_ms: int) -> list[Output]:
        outputs, item_id = self._turns.stopped(end_ms)
        if item_id is None:
            return []
        outputs += self._transcribe(item_id)
        if self._settings.creates_response:
            outputs += self._answer(item_id)
        return self._settle(outputs)

    def committed(self, item_id: str, heard_ms: int) -> list[Output]:
        """`Commit` is done; 0 if there was nothing to commit."""
        if item_id not in self._commits:
            return []  # it was not the client who asked
        event_id = self._commits.pop(item_id)
        try:
            outputs = self._turns.committed(item_id, heard_ms)
        except Refusal as refusal:
            return self._settle([_error(refusal, event_id)])
        return self._settle(outputs + self._transcribe(item_id))

    def transcribed(self, item_id: str, transcript: str | None, seconds: float) -> list[Output]:
        """What was said in a turn of `seconds`; None: it could not be recognised."""
        return self._turns.transcribed(item_id, transcript, seconds)

    def began(self, response_id: str) -> list[Output]:
        """Its sound or text begins to be given."""
        return self._settle(self._replies.began(response_id))

    def transcript(self, response_id: str, delta: str) -> list[Output]:
        """Words of its sound. The client reads them when the response is audible."""
        return self._settle(self._replies.write(response_id, delta))

    def text(self, response_id: str, delta: str) -> list[Output]:
        return self._settle(self._replies.write(response_id, delta))

    def spoken(self, response_id: str, audio_ms: int | None = None) -> list[Output]:
        """All of it was given, text or sound. Sound that is not audible yet holds the end of the
        response until it is, so say with 0 if there is none; `audio_ms` bounds truncation."""
        return self._settle(self._replies.spoken(response_id, audio_ms))

    def failed(self, response_id: str, code: str, message: str) -> list[Output]:
        """No more comes of it. What was given plays on."""
        return self._settle(self._replies.failed(response_id, code, message))

    def audible(self, response_id: str) -> list[Output]:
        """Its first sample is on the wire."""
        return self._settle(self._replies.hear(response_id))

    def silent(self, response_id: str) -> list[Output]:
        """Its last sample is: the end of the response, if `spoken` has not been told."""
        return self._settle(self._replies.silent(response_id))

    def cut(self, cut: Cut | None) -> list[Output]:
        """The output was flushed, on `Clear` or by the owner itself, which then counts as the
        client's wish. None: nothing played."""
        return self._settle(self._replies.cut(cut))

    def timer(self, now: float, heard_ms: int | None = None) -> list[Output]:
        """Call at `deadline`: after `idle_timeout_ms` of silence a response is made. `heard_ms`:
        position of the input; the session's age stands in for it."""
        timeout_s = self._settings.idle_timeout_s
        if now < self._idle_until or timeout_s is None:
            return []
        at_ms = round((now - self._begun) * 1000) if heard_ms is None else heard_ms
        if self._idle_until == _ARM:
            self._idle_until, self._idle_from_ms = now + timeout_s, at_ms
            return []
        self._idle_until = math.inf
        outputs, item_id = self._turns.timed_out(self._idle_from_ms, at_ms)
        outputs += [Commit(item_id), *self._transcribe(item_id), *self._answer(item_id)]
        return self._settle(outputs)

    def _update(self, event: Event) -> list[Output]:
        before = self.turn_detection
        self._settings = self._settings.updated(event.get("session"))
        outputs: list[Output] = [{"type": "session.updated", "session": self._settings.shown}]
        if self.turn_detection != before:
            if self.turn_detection is None:
                self._turns.forget()
            self._idle_until = math.inf
            outputs.append(Detect(self.turn_detection))
        return outputs

    def _append(self, event: Event) -> list[Output]:
        detail = "speech comes by WebRTC's audio track: speak there"
        raise Refusal("unsupported_over_webrtc", detail, "type")

    def _commit(self, event: Event) -> list[Output]:
        if not self._responds:
            detail = "nothing is kept here that could be committed"
            raise Refusal("input_audio_buffer_commit_empty", detail)
        item_id = self._turns.next_item_id()
        self._commits = {item_id: event.get("event_id")}
        return [Commit(item_id)]

    def _forget(self, event: Event) -> list[Output]:
        self._turns.forget()
        return [{"type": "input_audio_buffer.cleared"}, Forget()]

    def _create_item(self, event: Event) -> list[Output]:
        item = items.read(event.get("item"), self._new_id("item"))
        if item["id"] in (self._turns.item_id, self._replies.item_id, *self._commits):
            raise Refusal("item_already_exists", "the id is taken: give another", "item.id")
        after = event.get("previous_item_id")
        if after is not None and not isinstance(after, str):
            raise invalid("previous_item_id", after, "'root' or an item's id")
        dropped = self._conversation.add(item, after)
        added = {"previous_item_id": self._conversation.before(item["id"]), "item": item}
        return [
            {"type": "conversation.item.added", **added},
            {"type": "conversation.item.done", **added},
            *map(Drop, dropped),
        ]

    def _retrieve(self, event: Event) -> list[Output]:
        item = self._conversation.get(text(event, "item_id"))
        return [{"type": "conversation.item.retrieved", "item": item}]

    def _delete(self, event: Event) -> list[Output]:
        item_id = text(event, "item_id")
        self._conversation.remove(item_id)
        return [{"type": "conversation.item.deleted", "item_id": item_id}, Drop(item_id)]

    def _truncate(self, event: Event) -> list[Output]:
        part, heard_ms = number(event, "content_index", 0), number(event, "audio_end_ms")
        claim = Claim(text(event, "item_id"), part, heard_ms, event.get("event_id"))
        return self._replies.truncate(claim)

    def _create_response(self, event: Event) -> list[Output]:
        if not self._responds:
            detail = "this backend says back what it hears and makes no responses"
            raise Refusal("responses_unsupported", detail, "type")
        request = Request.read(
            event.get("response"),
            self._settings,
            self._conversation,
            lambda: self._new_id("item"),
        )
        outputs = self._replies.create(request)
        self._had_reply = True
        return outputs

    def _cancel(self, event: Event) -> list[Output]:
        return self._replies.cancel(event.get("response_id"))

    def _clear(self, event: Event) -> list[Output]:
        return self._replies.silence("client_cancelled")

    def _transcribe(self, item_id: str) -> list[Output]:
        return self._turns.await_transcript(item_id) if self.transcribes else []

    def _answer(self, item_id: str) -> list[Output]:
        """A response to this turn, unless another one goes on."""
        if not self._responds or self._replies.active:
            return []
        self._had_reply = True
        request = Request.read(None, self._settings, self._conversation, lambda: "", item_id)
        return self._replies.create(request)

    def _settle(self, outputs: list[Output]) -> list[Output]:
        """Idle time runs while nobody speaks, from the end of the last reply on."""
        speaks = self._turns.item_id or self._replies.active or self._replies.audible
        if speaks or not self._had_reply or self._settings.idle_timeout_s is None:
            self._idle_until = math.inf
        elif self._idle_until == math.inf:
            self._idle_until = _ARM
        return outputs


def _error(refusal: Refusal, event_id: object) -> Event:
    return events.error(refusal.code, refusal.message, param=refusal.param, event_id=event_id)


_Act = Callable[[Session, Event], list[Output]]
_ACTS: dict[str, _Act] = {
    "session.update": Session._update,
    "input_audio_buffer.append": Session._append,
    "input_audio_buffer.commit": Session._commit,
    "input_audio_buffer.clear": Session._forget,
    "conversation.item.create": Session._create_item,
    "conversation.item.retrieve": Session._retrieve,
    "conversation.item.delete": Session._delete,
    "conversation.item.truncate": Session._truncate,
    "response.create": Session._create_response,
    "response.cancel": Session._cancel,
    "output_audio_buffer.clear": Session._clear,
}
