"""What a call and the model behind it say to each other."""

from collections.abc import Callable
from typing import Protocol

from transceiver.rtp import Packet


class Outlet(Protocol):
    """The downlink of a call."""

    def send(self, payload: bytes, timestamp: int, marker: bool) -> None:
        """Send an Opus packet. `timestamp` in ticks of 48 kHz; the sequence number is the
        call's. Dropped while nobody can take it."""


class Backend(Protocol):
    """One call's model. Methods return at once; none raises."""

    def receive(self, packet: Packet, newest: bool) -> None:
        """An authentic audio packet, at its arrival. `newest`: none with a higher number came
        before; a late one is False. Lost packets are gaps in `packet.sequence`."""

    def loss(self, fraction: float, now: float) -> None:
        """The client's report: this share of our packets was lost lately."""

    def pause(self) -> None:
        """The client is away: nothing comes, and nothing should be sent."""

    def resume(self) -> None: ...

    def close(self) -> None:
        """The call has ended."""


BackendFactory = Callable[[Outlet], Backend]
