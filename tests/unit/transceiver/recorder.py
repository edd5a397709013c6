"""A backend that notes what it is told, and breaks where a test wants it to."""

import math
from collections.abc import Callable

from transceiver.backends.base import Client, Outlet
from transceiver.events import Event
from transceiver.lifecycle import End
from transceiver.line import Line
from transceiver.remembered import Remembered
from transceiver.rtp import Packet


class Recorder:
    """`faulty`: the method that raises."""

    def __init__(self, faulty: str = "") -> None:
        self.faulty = faulty
        self.deadline = math.inf
        self.client: Client | None = None
        self.told: list[str] = []
        self.events: list[Event] = []
        self.noted: list[Event] = []  # of what it said
        self.finishing: list[End] = []

    def make(self, client: Client) -> "Recorder":
        """For a `BackendFactory`."""
        self.client = client
        self._told("make")
        return self

    def line(
        self,
        on_wake: Callable[[], None] = lambda: None,
        on_end: Callable[[End], None] = lambda reason: None,
    ) -> Line:
        """The line of a call that has this backend."""
        numbers = iter(range(10**6))

        def new_id(kind: str) -> str:
            return f"{kind}_{next(numbers)}"

        return Line(self.make, {"a": 1}, new_id, self.noted.append, on_wake, on_end)

    def begin(self, outlet: Outlet, now: float) -> None:
        self._told("begin")

    def receive(self, packet: Packet, newest: bool, now: float) -> None:
        self._told("receive")

    def event(self, event: Event, now: float) -> None:
        self.events.append(event)
        self._told("event")

    def timer(self, now: float) -> None:
        self.deadline = math.inf
        self._told("timer")

    def loss(self, fraction: float, now: float) -> None:
        self._told("loss")

    def pause(self) -> None:
        self._told("pause")

    def resume(self) -> None:
        self._told("resume")

    def finish(self, reason: End, now: float) -> None:
        self.finishing.append(reason)
        self._told("finish")

    def close(self) -> None:
        self._told("close")

    def remembered(self, now: float) -> Remembered:
        self._told("remembered")
        return Remembered({})

    def statistics(self) -> dict[str, int]:
        self._told("statistics")
        return {"heard": len(self.events)}

    def _told(self, what: str) -> None:
        self.told.append(what)
        if what == self.faulty:
            raise RuntimeError(f"a fault of {what}")
