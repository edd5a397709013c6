"""A table with the sound behind it, on a clock that tests turn."""

import base64
from collections.abc import Sequence
from typing import Any

from tests.unit.transceiver.backends.around import Peer, Wire
from transceiver.backends.realtime.out import Out, Up
from transceiver.backends.realtime.table import Table
from transceiver.events import Event
from transceiver.playback import Playback
from transceiver.session.items import Item

SECOND = bytes(48000)
OWN = {
    "type": "realtime",
    "id": "sess_up",
    "audio": {"input": {"turn_detection": {"type": "server_vad", "interrupt_response": True}}},
}
STARTED: Event = {"type": "input_audio_buffer.speech_started", "item_id": "u1", "event_id": "e"}


class Rig:
    """A table whose server is configured; what it gives goes into `up` and `down`."""

    def __init__(
        self,
        session: dict[str, Any] | None = None,
        ready: bool = True,
        model: str | None = None,
        restored: Sequence[Item] = (),
    ) -> None:
        self.wire = Wire()
        self.table = Table({}, model, Peer().new_id, restored)
        self.wire.open(24000, self.frame)
        self.playback = Playback(self.wire, 24000, 0.0)
        self.table.replies.begin(self.playback)
        self.up: list[Event] = []
        self.down: list[Event] = []
        if ready:
            self.configure(session or OWN)
            self.up.clear()
            self.down.clear()

    def configure(self, session: dict[str, Any]) -> None:
        self.server("session.created", session=session)
        self.server("session.updated", session=session)

    def frame(self, now: float) -> None:
        self.take(self.table.replies.frame(now))

    def take(self, outs: list[Out]) -> None:
        for out in outs:
            (self.up if isinstance(out, Up) else self.down).append(out.event)

    def server(self, kind: str, **fields: Any) -> None:
        self.take(self.table.server({"type": kind, "event_id": "up", **fields}, self.wire.now))

    def client(self, kind: str, **fields: Any) -> None:
        self.take(self.table.client({"type": kind, **fields}, self.wire.now))

    def reply(self, samples: bytes = SECOND, response: str = "r1", item: str = "i1") -> None:
        self.server("response.created", response={"id": response, "status": "in_progress"})
        self.delta(samples, response, item)
        self.down.clear()

    def delta(self, samples: bytes, response: str = "r1", item: str = "i1") -> None:
        audio = base64.b64encode(samples).decode()
        of = {"response_id": response, "item_id": item, "content_index": 0}
        self.server("response.output_audio.delta", **of, delta=audio)

    def done(self, status: str = "completed", response: str = "r1") -> None:
        self.server("response.done", response={"id": response, "status": status})

    def play(self, seconds: float) -> None:
        self.wire.run(self.wire.now + seconds)

    @property
    def told(self) -> list[str]:
        return [event["type"] for event in self.down]

    @property
    def asked(self) -> list[str]:
        return [event["type"] for event in self.up]
