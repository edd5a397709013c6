"""The model that says what it hears: each packet is answered at its arrival, without a pause.

The client's own timestamps go back to it, so its pauses stay pauses and its own buffer does the
rest. Late packets are not answered: their place in the sequence is taken.
"""

import enum

from transceiver.audio.opus import CodecError, Decoder, Encoder
from transceiver.backends.base import Outlet
from transceiver.rtp import Packet

RATE = 24000  # Hz, of the codecs and of any backend
LOSSY = 0.01  # share of packets lost that turns FEC on
FEC_S = 10.0  # and for how long


class Mode(enum.StrEnum):
    AUDIO = "audio"  # decode and encode, as with a model
    OPUS = "opus"  # mirror the payload: what the transport alone costs


class Echo:
    def __init__(self, outlet: Outlet, mode: Mode = Mode.AUDIO) -> None:
        self._outlet = outlet
        self._paused = False
        self._fec_until = 0.0
        self._codec = (Decoder(RATE), Encoder(RATE)) if mode is Mode.AUDIO else None
        self.undecodable = 0  # packets that are no Opus

    def receive(self, packet: Packet, newest: bool) -> None:
        if self._paused or not newest:
            return
        payload = packet.payload
        if self._codec is not None:
            decoder, encoder = self._codec
            try:
                payload = encoder.encode(decoder.decode(payload))
            except CodecError:
                self.undecodable += 1
                return
        self._outlet.send(payload, packet.timestamp, packet.marker)

    def loss(self, fraction: float, now: float) -> None:
        if self._codec is None:
            return
        if fraction >= LOSSY:
            self._fec_until = now + FEC_S
        fec = now < self._fec_until
        if fec != self._codec[1].fec:
            self._codec[1].fec = fec

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False

    def close(self) -> None:
        self._paused = True
        self._codec = None
