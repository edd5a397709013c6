"""What a call and the model behind it say to each other: packets or samples, and events."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from transceiver.events import Event, NewId
from transceiver.lifecycle import End
from transceiver.remembered import Remembered
from transceiver.rtp import Packet
from transceiver.session.items import Item


class Client(Protocol):
    """The client of a call, as its backend knows it from before there is audio."""

    @property
    def session(self) -> Mapping[str, Any]:
        """What the call's maker asked for: a Realtime session object in parts, often empty."""

    @property
    def restored(self) -> Sequence[Item]:
        """Items of the call that this one carries on, as `conversation.item.create` takes them:
        the conversation begins with them, and the client is told each; often none."""

    @property
    def new_id(self) -> NewId: ...

    def say(self, event: Event) -> None:
        """Tell the client. In order; kept until it has a channel to hear it on. The call fills in
        `event_id` where there is none."""

    def wake(self) -> None:
        """`deadline` has moved outside of a call of the backend's methods."""

    def end(self, reason: End) -> None:
        """End the call now; `close` follows inside this call."""


class Outlet(Protocol):
    """The downlink of a call: packets of the backend's own (`send`), or samples (`open`, `play`)
    that leave at their time. A backend uses one of the two."""

    def send(self, payload: bytes, timestamp: int, marker: bool) -> None:
        """Send an Opus packet now. `timestamp` in ticks of 48 kHz; the sequence number is the
        call's. Dropped while nobody can take it."""

    def open(self, rate: int, on_frame: Callable[[float], None] | None = None) -> None:
        """From now on a packet leaves every 20 ms: what is played, else silence. `rate` of the
        samples in Hz, one of `opus.RATES`; say it once. `on_frame(now)` is called after each
        frame with samples of `play` in it. Raises `CodecError`."""

    def play(self, samples: bytes) -> bool:
        """Queue mono samples, 16-bit native, as many bytes as there are. False: more than 120 s
        would wait, or the call has ended; none of these was taken."""

    def flush(self) -> int:
        """Fall silent within 20 ms; returns how many samples were dropped."""

    @property
    def sent(self) -> int:
        """Samples of `play` whose time on the wire has come, since `open`: all that were taken but
        those that wait, that `flush` dropped or were left of half a sample."""

    @property
    def rtt(self) -> float | None:
        """Seconds to the client and back, if known."""


class Backend(Protocol):
    """One call's model, made at the client's first authentic check. Methods return at once; none
    raises. Audio comes only after `begin`, and so do `timer`, `loss`, `pause` and `resume`."""

    @property
    def deadline(self) -> float:
        """When `timer` has work; math.inf = never. It moves in the calls of this class only, or
        `Client.wake` tells."""

    def begin(self, outlet: Outlet, now: float) -> None:
        """The client is connected: audio flows both ways."""

    def receive(self, packet: Packet, newest: bool, now: float) -> None:
        """An authentic packet, at its arrival; one of padding alone has no payload. `newest`: none
        with a higher number came before. Lost packets are gaps in `packet.sequence`."""

    def event(self, event: Event, now: float) -> None:
        """What the client says beside its audio: anything that is a JSON object."""

    def timer(self, now: float) -> None:
        """Do what is due."""

    def loss(self, fraction: float, now: float) -> None:
        """The client's report: this share of our packets was lost lately."""

    def pause(self) -> None:
        """The client is away: nothing comes, and what is played waits."""

    def resume(self) -> None: ...

    def finish(self, reason: End, now: float) -> None:
        """The call is to end: let what waits be heard, 10 s at most, then `Client.end(reason)`."""

    def close(self) -> None:
        """The call has ended; nothing is called any more."""

    def remembered(self, now: float) -> Remembered:
        """What it would take to carry the conversation on elsewhere; at any time until `close`."""

    def statistics(self) -> dict[str, int]:
        """Counts of what it heard, for people."""


BackendFactory = Callable[[Client], Backend]
