"""The model that says what it hears.

Two modes answer each packet at its arrival, without a pause, under the client's own timestamps: its
pauses stay pauses and its own buffer does the rest. Lost packets are repaired before they are said
back, in their place in time. The third mode plays what it hears as a model's voice is played.
"""

import abc
import enum
import math

from transceiver.audio.uplink import Kind, Sound, Uplink
from transceiver.audio.voice import Voice
from transceiver.backends.base import Backend, Outlet
from transceiver.rtp import CLOCK_RATE, Packet

RATE = 24000  # Hz, of the codecs and of any backend

_TICKS = CLOCK_RATE // RATE  # of a sample


class Mode(enum.StrEnum):
    AUDIO = "audio"  # decode and encode, as with a model
    OPUS = "opus"  # mirror the payload: what the transport alone costs
    PACED = "paced"  # decode, and play out every 20 ms like a voice


def make(outlet: Outlet, mode: Mode = Mode.AUDIO) -> Backend:
    """The backend of one call."""
    match mode:
        case Mode.AUDIO:
            return Echo(outlet)
        case Mode.OPUS:
            return Mirror(outlet)
        case Mode.PACED:
            return PacedEcho(outlet)


class Mirror:
    """Mode `opus`. Late packets are not answered: their place in the sequence is taken."""

    deadline = math.inf

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._silent = False  # paused or closed

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


class _Listener(abc.ABC):
    """What the modes that decode have in common."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._uplink = Uplink(RATE)
        self._silent = False

    @property
    def deadline(self) -> float:
        return math.inf if self._silent else self._uplink.deadline

    def receive(self, packet: Packet, newest: bool, now: float) -> None:
        if not self._silent:
            for sound in self._uplink.receive(packet, now):
                self._hear(sound)

    def timer(self, now: float) -> None:
        if not self._silent:
            for sound in self._uplink.timer(now):
                self._hear(sound)

    @abc.abstractmethod
    def _hear(self, sound: Sound) -> None: ...

    def pause(self) -> None:
        self._silent = True

    def resume(self) -> None:
        self._silent = False

    def close(self) -> None:
        """The codecs are given back at once, whoever still holds this object."""
        self._silent = True
        del self._uplink

    def statistics(self) -> dict[str, int]:
        uplink = self._uplink
        return {
            "late": uplink.late,
            "duplicates": uplink.duplicates,
            "recovered": uplink.recovered,
            "concealed": uplink.concealed,
            "silence_ms": uplink.silence_ms,
            "resyncs": uplink.resyncs,
            "undecodable": uplink.undecodable,
        }


class Echo(_Listener):
    """Mode `audio`."""

    def __init__(self, outlet: Outlet) -> None:
        super().__init__(outlet)
        self._voice = Voice(RATE)
        self._next: int | None = None  # timestamp, if there is no pause

    def loss(self, fraction: float, now: float) -> None:
        self._voice.loss(fraction, now)

    def close(self) -> None:
        super().close()
        del self._voice

    def statistics(self) -> dict[str, int]:
        return {**super().statistics(), "fec": self._voice.fec}

    def _hear(self, sound: Sound) -> None:
        if sound.kind is Kind.SILENCE:
            return  # the timestamps tell
        timestamp = sound.timestamp
        for piece in self._voice.cut(sound.samples):
            marker = timestamp != self._next
            self._outlet.send(self._voice.encode(piece), timestamp & 0xFFFFFFFF, marker)
            timestamp += len(piece) // 2 * _TICKS
            self._next = timestamp


class PacedEcho(_Listener):
    """Mode `paced`."""

    def __init__(self, outlet: Outlet) -> None:
        super().__init__(outlet)
        outlet.open(RATE)

    def loss(self, fraction: float, now: float) -> None:
        """The call's own encoder hears of it too."""

    def _hear(self, sound: Sound) -> None:
        if sound.kind is not Kind.SILENCE:  # it has passed already
            self._outlet.play(sound.samples)
