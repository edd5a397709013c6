"""What a call and the model behind it say to each other."""

from collections.abc import Callable
from typing import Protocol

from transceiver.rtp import Packet


class Outlet(Protocol):
    """The downlink of a call: packets of the backend's own (`send`), or samples (`open`, `play`)
    that leave at their time. A backend uses one of the two."""

    def send(self, payload: bytes, timestamp: int, marker: bool) -> None:
        """Send an Opus packet now. `timestamp` in ticks of 48 kHz; the sequence number is the
        call's. Dropped while nobody can take it."""

    def open(self, rate: int) -> None:
        """From now on a packet leaves every 20 ms: what is played, else silence. `rate` of the
        samples in Hz, one of `opus.RATES`; say it once. Raises `CodecError`."""

    def play(self, samples: bytes) -> bool:
        """Queue mono samples, 16-bit native, as many bytes as there are. False: more than 120 s
        would wait, or the call has ended; none of these was taken."""

    def flush(self) -> int:
        """Fall silent within 20 ms; returns how many samples were dropped."""


class Backend(Protocol):
    """One call's model. Methods return at once; none raises."""

    @property
    def deadline(self) -> float:
        """When `timer` has work; math.inf = never. It moves in the calls of this class only."""

    def receive(self, packet: Packet, newest: bool, now: float) -> None:
        """An authentic packet, at its arrival; one of padding alone has no payload. `newest`: none
        with a higher number came before. Lost packets are gaps in `packet.sequence`."""

    def timer(self, now: float) -> None:
        """Do what is due."""

    def loss(self, fraction: float, now: float) -> None:
        """The client's report: this share of our packets was lost lately."""

    def pause(self) -> None:
        """The client is away: nothing comes, and what is played waits."""

    def resume(self) -> None: ...

    def close(self) -> None:
        """The call has ended; nothing is called any more."""

    def statistics(self) -> dict[str, int]:
        """Counts of what it heard, for people."""


BackendFactory = Callable[[Outlet], Backend]
