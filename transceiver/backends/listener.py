"""What backends that decode have in common: the client's sound on its time line."""

import abc
import math

from transceiver.audio.uplink import Sound, Uplink
from transceiver.rtp import Packet


class Listener(abc.ABC):
    """Part of a `Backend`: hears nothing while the client is away, and nothing after `close`."""

    def __init__(self, rate: int) -> None:
        """`rate` of the samples in Hz, one of `opus.RATES`. Raises `CodecError`."""
        self._uplink = Uplink(rate)
        self._deaf = False

    @property
    def deadline(self) -> float:
        return math.inf if self._deaf else self._uplink.deadline

    def receive(self, packet: Packet, newest: bool, now: float) -> None:
        if not self._deaf:
            for sound in self._uplink.receive(packet, now):
                self._hear(sound, now)

    def timer(self, now: float) -> None:
        if not self._deaf:
            for sound in self._uplink.timer(now):
                self._hear(sound, now)

    @abc.abstractmethod
    def _hear(self, sound: Sound, now: float) -> None: ...

    def pause(self) -> None:
        self._deaf = True

    def resume(self) -> None:
        self._deaf = False

    def close(self) -> None:
        """The codec is given back at once, whoever still holds this object."""
        self._deaf = True
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
