"""An owner of the audio for tests of the session: carries out its commands on an imagined line."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from tests.judges import openai_types, order
from transceiver.events import Event
from transceiver.session.commands import Abandon, Clear, Command, Commit, Cut, Output, Respond
from transceiver.session.items import Item
from transceiver.session.session import Session


def ids() -> Callable[[str], str]:
    count = itertools.count(1)
    return lambda kind: f"{kind}_{next(count)}"


class Owner:
    """`events` are what the client has been told, `commands` what the session asked for.

    `playing` is what is on the line: `Clear` is answered with that much of it heard.
    """

    def __init__(
        self,
        asked: dict[str, Any] | None = None,
        *,
        responds: bool = True,
        recognises: bool = False,
        restored: Sequence[Item] = (),
    ) -> None:
        self.events: list[Event] = []
        self.commands: list[Command] = []
        self.playing: Cut | None = None
        self.heard_ms = 100  # in the input, uncommitted
        self._ids = ids()
        self.session = Session(
            asked or {},
            model="parrot",
            new_id=self._ids,
            now=100.0,
            expires_at=1_800_000_000,
            responds=responds,
            recognises=recognises,
            restored=restored,
        )
        self.do(self.session.begin())

    def do(self, outputs: list[Output]) -> list[Event]:
        """Carry out, in order; returns the events that came of it."""
        told = len(self.events)
        for output in outputs:
            if isinstance(output, dict):
                self.events.append({"event_id": self._ids("event"), **output})
                continue
            self.commands.append(output)
            match output:
                case Clear():
                    cut, self.playing = self.playing, None
                    self.do(self.session.cut(cut))
                case Commit(item_id):
                    self.do(self.session.committed(item_id, self.heard_ms))
        return self.events[told:]

    def say(self, kind: str, **fields: Any) -> list[Event]:
        """The client sends an event."""
        return self.do(self.session.event({"type": kind, **fields}, 100.0))

    def update(self, **session: Any) -> list[Event]:
        return self.say("session.update", session={"type": "realtime", **session})

    def detect(self, detection: dict[str, Any] | None) -> list[Event]:
        return self.update(audio={"input": {"turn_detection": detection}})

    def turn(self, start_ms: int = 0, end_ms: int = 1000) -> list[Event]:
        """The client speaks."""
        told = len(self.events)
        self.do(self.session.speech_started(start_ms))
        self.do(self.session.speech_stopped(end_ms))
        return self.events[told:]

    def write(self, text: str) -> list[Event]:
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        return self.say("conversation.item.create", item=item)

    @property
    def response(self) -> Respond:
        """The last that was asked for."""
        return [command for command in self.commands if isinstance(command, Respond)][-1]

    def reply(
        self, transcript: str = "one two three four", audio_ms: int = 1000, heard_ms: int = 0
    ) -> Respond:
        """Make all of the last response, of which the first frame is on the wire."""
        response = self.response
        self.do(self.session.began(response.response_id))
        self.do(self.session.transcript(response.response_id, transcript))
        self.do(self.session.spoken(response.response_id, audio_ms))
        self.do(self.session.audible(response.response_id))
        self.playing = Cut(response.response_id, response.item_id, 0, heard_ms, audio_ms)
        return response

    def drain(self) -> list[Event]:
        """All of it was heard."""
        self.playing = None
        return self.do(self.session.silent(self.response.response_id))

    def item(self, item_id: str) -> dict[str, Any]:
        """As the client gets it."""
        (event,) = self.say("conversation.item.retrieve", item_id=item_id)
        item: dict[str, Any] = event["item"]
        return item


def kinds(events: list[Event]) -> list[str]:
    return [event["type"] for event in events]


def error(events: list[Event]) -> dict[str, Any]:
    """Of the only event."""
    (event,) = events
    assert event["type"] == "error", event
    told: dict[str, Any] = event["error"]
    return told


def abandoned(owner: Owner) -> list[str]:
    return [each.response_id for each in owner.commands if isinstance(each, Abandon)]


def judge(owner: Owner, ended: bool = True) -> None:
    """Every event is one of OpenAI's, and in its place."""
    assert [fault for event in owner.events for fault in openai_types.faults(event)] == []
    assert order.faults(owner.events, ended=ended) == []
