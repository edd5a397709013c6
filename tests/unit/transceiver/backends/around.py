"""What is around a backend: its client and its outlet, on a clock that tests turn."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transceiver.audio.downlink import SLOT_S, Downlink
from transceiver.events import Event
from transceiver.lifecycle import End
from transceiver.session.items import Item


class Peer:
    """A `Client`: keeps what it is told."""

    def __init__(
        self, session: Mapping[str, Any] | None = None, restored: Sequence[Item] = ()
    ) -> None:
        self.session: Mapping[str, Any] = session or {}
        self.restored = restored
        self.said: list[Event] = []
        self.ended: list[End] = []
        self.wakes = 0
        self._ids: Counter[str] = Counter()

    def new_id(self, kind: str) -> str:
        self._ids[kind] += 1
        return f"{kind}_{self._ids[kind]}"

    def say(self, event: Event) -> None:
        self.said.append(event)

    def wake(self) -> None:
        self.wakes += 1

    def end(self, reason: End) -> None:
        self.ended.append(reason)

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.said]


class Wire:
    """An `Outlet` as the call's own, without Opus: `frames` are what left, and when; `run` turns
    the clock."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now
        self.rtt: float | None = None
        self.packets: list[tuple[bytes, int, bool]] = []  # of `send`
        self.frames: list[tuple[float, bytes | None]] = []
        self.rate = 0
        self.away = False
        self._downlink: Downlink | None = None
        self._on_frame: Callable[[float], None] | None = None
        self._slot = 0
        self._zero = now

    def send(self, payload: bytes, timestamp: int, marker: bool) -> None:
        self.packets.append((payload, timestamp, marker))

    def open(self, rate: int, on_frame: Callable[[float], None] | None = None) -> None:
        self.rate = rate
        self._downlink = Downlink(rate, 0)
        self._on_frame = on_frame

    def play(self, samples: bytes) -> bool:
        return self._downlink is not None and self._downlink.play(samples, self.now)

    def flush(self) -> int:
        return 0 if self._downlink is None else self._downlink.flush()

    @property
    def sent(self) -> int:
        return 0 if self._downlink is None else self._downlink.gone

    @property
    def queued(self) -> int:
        return 0 if self._downlink is None else self._downlink.queued

    @property
    def next_slot(self) -> float:
        return self._zero + self._slot * SLOT_S

    def run(self, until: float) -> None:
        """All slots before `until`, then that time itself."""
        while self.next_slot < until:
            self.now = self.next_slot
            self.slot()
        self.now = until

    def slot(self) -> None:
        n, self._slot = self._slot, self._slot + 1
        if self._downlink is None:
            return
        if self.away:
            self._downlink.sleep(n)
            return
        before = self.sent
        self.frames.append((self.now, self._downlink.slot(n, self.now).samples))
        if self._on_frame is not None and self.sent != before:
            self._on_frame(self.now)
