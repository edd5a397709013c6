"""The model that says what it hears.

Two modes answer each packet at its arrival, without a pause, under the client's own timestamps: its
pauses stay pauses and its own buffer does the rest. Lost packets are repaired before they are said
back, in their place in time. The third mode plays what it hears as a model's voice is played.
"""

import enum
import math
from collections.abc import Callable
from typing import Protocol

from transceiver.audio.uplink import Kind, Sound
from transceiver.audio.voice import Voice
from transceiver.backends.base import Backend, Client, Outlet
from transceiver.backends.keeper import Keeper, Terms
from transceiver.backends.listener import Listener
from transceiver.events import Event
from transceiver.lifecycle import End
from transceiver.remembered import Remembered
from transceiver.rtp import CLOCK_RATE, Packet
from transceiver.session.commands import Command

RATE = 24000  # Hz, of the codecs and of any backend

_TICKS = CLOCK_RATE // RATE  # of a sample


class Mode(enum.StrEnum):
    AUDIO = "audio"  # decode and encode, as with a model
    OPUS = "opus"  # mirror the payload: what the transport alone costs
    PACED = "paced"  # decode, and play out every 20 ms like a voice


def make(client: Client, mode: Mode = Mode.AUDIO, terms: Terms | None = None) -> Backend:
    """The backend of one call."""
    return Echo(client, _MOUTHS[mode](), terms or Terms())


class Mouth(Protocol):
    """The audio of a mode; its methods are those of a `Backend`."""

    @property
    def deadline(self) -> float: ...

    @property
    def waits(self) -> bool:
        """Whether something is still to be heard."""

    def begin(self, outlet: Outlet, on_frame: Callable[[float], None]) -> None:
        """`on_frame` follows each frame of what waited."""

    def receive(self, packet: Packet, newest: bool, now: float) -> None: ...
    def timer(self, now: float) -> None: ...
    def loss(self, fraction: float, now: float) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def close(self) -> None: ...
    def statistics(self) -> dict[str, int]: ...


class Echo:
    """A session in which nothing is ever answered but by `mouth`."""

    def __init__(self, client: Client, mouth: Mouth, terms: Terms) -> None:
        self._keeper = Keeper(client, terms, _ignore, model="echo", responds=False)
        self._mouth = mouth
        self.receive = mouth.receive
        self.loss = mouth.loss
        self.pause = mouth.pause
        self.statistics = mouth.statistics

    @property
    def deadline(self) -> float:
        return min(self._mouth.deadline, self._keeper.deadline)

    def begin(self, outlet: Outlet, now: float) -> None:
        self._mouth.begin(outlet, self._frame)
        self._keeper.begin(now)

    def event(self, event: Event, now: float) -> None:
        self._keeper.event(event, now)

    def timer(self, now: float) -> None:
        self._mouth.timer(now)
        if self._keeper.timer(now):
            self.finish(End.EXPIRED, now)

    def finish(self, reason: End, now: float) -> None:
        """Only what is played can wait; what comes meanwhile is not said back."""
        self._keeper.finish(reason, now)
        self._mouth.pause()
        self._frame(now)

    def resume(self) -> None:
        if not self._keeper.finishing:
            self._mouth.resume()

    def close(self) -> None:
        self._mouth.close()

    def remembered(self, now: float) -> Remembered:
        return self._keeper.remembered()

    def _frame(self, now: float) -> None:
        if self._keeper.finishing and not self._mouth.waits:
            self._keeper.end()


def _ignore(command: Command, now: float) -> None:
    """There are no turns and no replies here."""


class Mirror:
    """Mode `opus`. Late packets are not answered: their place in the sequence is taken."""

    deadline = math.inf
    waits = False

    def __init__(self) -> None:
        self._silent = False  # paused or closed

    def begin(self, outlet: Outlet, on_frame: Callable[[float], None]) -> None:
        self._outlet = outlet

    def receive(self, packet: Packet, newest: bool, now: float) -> None:
        if newest and packet.payload and not self._silent:
            self._outlet.send(packet.payload, packet.timestamp, packet.marker)

    def timer(self, now: float) -> None:
        """Nothing is ever due."""

    def loss(self, fraction: float, now: float) -> None:
        """Payloads are the client's own."""

    def pause(self) -> None:
        self._silent = True

    def resume(self) -> None:
        self._silent = False

    def close(self) -> None:
        self._silent = True

    def statistics(self) -> dict[str, int]:
        return {}


class Repeater(Listener):
    """Mode `audio`."""

    waits = False

    def __init__(self) -> None:
        super().__init__(RATE)
        self._voice = Voice(RATE)
        self._next: int | None = None  # timestamp, if there is no pause

    def begin(self, outlet: Outlet, on_frame: Callable[[float], None]) -> None:
        self._outlet = outlet

    def loss(self, fraction: float, now: float) -> None:
        self._voice.loss(fraction, now)

    def close(self) -> None:
        super().close()
        del self._voice

    def statistics(self) -> dict[str, int]:
        return {**super().statistics(), "fec": self._voice.fec}

    def _hear(self, sound: Sound, now: float) -> None:
        if sound.kind is Kind.SILENCE:
            return  # the timestamps tell
        timestamp = sound.timestamp
        for piece in self._voice.cut(sound.samples):
            marker = timestamp != self._next
            self._outlet.send(self._voice.encode(piece), timestamp & 0xFFFFFFFF, marker)
            timestamp += len(piece) // 2 * _TICKS
            self._next = timestamp


class Player(Listener):
    """Mode `paced`."""

    def __init__(self) -> None:
        super().__init__(RATE)
        self._played = 0  # samples

    @property
    def waits(self) -> bool:
        return self._played > 0 and self._outlet.sent < self._played

    def begin(self, outlet: Outlet, on_frame: Callable[[float], None]) -> None:
        self._outlet = outlet
        outlet.open(RATE, on_frame)

    def loss(self, fraction: float, now: float) -> None:
        """The call's own encoder hears of it too."""

    def _hear(self, sound: Sound, now: float) -> None:
        if sound.kind is not Kind.SILENCE and self._outlet.play(sound.samples):  # else: it passed
            self._played += len(sound.samples) // 2


_MOUTHS: dict[Mode, Callable[[], Mouth]] = {
    Mode.AUDIO: Repeater,
    Mode.OPUS: Mirror,
    Mode.PACED: Player,
}
