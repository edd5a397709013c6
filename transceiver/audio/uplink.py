"""What a client says, as samples on an unbroken time line: the way from packets to a backend.

Pure. A backend is no ear: it wants samples in order, early and at their true time, so there is no
play-out buffer. Samples leave at the arrival of their packet; a lost packet holds up the ones
behind it as long as `order.py` waits for it, then it is repaired:

- by the FEC data of the packet behind it, where there is some,
- else by what libopus makes up, 100 ms at most,
- then by silence.

A pause of the sender (DTX, mute: timestamps jump, sequence numbers do not) is silence of its
length, in pieces of at most 1 s; a pause above 120 s is a jump of the time line instead. Nothing
is filled in that would bring the time line more than 10 s before the clock: such timestamps, and
any that go back, are no time that passed, and the samples just go on.
"""

import enum
from functools import cache
from typing import NamedTuple

from transceiver.audio.opus import CodecError, Decoder
from transceiver.audio.order import Order, Ordered
from transceiver.rtp import CLOCK_RATE, FRAME, Packet

CONCEALED = 5 * FRAME  # ticks made up in a row, then silence
MAX_SILENCE = 120 * CLOCK_RATE  # ticks; a longer pause is a jump
LEAD = 10 * CLOCK_RATE  # ticks between time line and clock that delays may account for

_UNIT = 120  # ticks in 2.5 ms: libopus conceals multiples of it; a smaller step is no gap
_LONGEST = 48 * _UNIT  # of a packet, RFC 6716 section 3.2
_RESTART = CLOCK_RATE // 5  # ticks between two sources that count as a pause


class Kind(enum.StrEnum):
    DECODED = "decoded"
    RECOVERED = "recovered"  # lost, but the packet behind it had a copy
    CONCEALED = "concealed"  # lost, made up by libopus
    SILENCE = "silence"  # a pause, or lost for long


class Sound(NamedTuple):
    samples: bytes  # 16-bit mono, native order, at the rate of the uplink
    timestamp: int  # of the first sample: 48 kHz ticks, unwrapped, from the client's first on
    kind: Kind


class Uplink:
    """One call's. Ask `timer` again at `deadline`."""

    def __init__(self, rate: int) -> None:
        """`rate` in Hz, one of `opus.RATES`. Raises `CodecError`."""
        self.rate = rate
        self.recovered = 0  # frames, as the next two
        self.concealed = 0
        self.undecodable = 0  # packets that are no Opus; each is concealed
        self.silence_ms = 0
        self._decoder = Decoder(rate)
        self._order = Order()
        self._step = CLOCK_RATE // rate  # ticks of one sample
        self._started = False
        self._end = 0  # of the time line so far
        self._offset = 0  # of a packet's timestamp to its place on the time line
        self._arrived = 0.0  # when the last packet was given out
        self._zero = 0.0  # the clock's zero on the time line
        self._length = FRAME  # ticks of the last packet
        self._missing = 0  # packets lost before packets without a payload

    @property
    def deadline(self) -> float:
        """When an open gap is given up; infinite when none is open."""
        return self._order.deadline

    @property
    def late(self) -> int:
        """Packets dropped since their place was filled."""
        return self._order.late

    @property
    def duplicates(self) -> int:
        return self._order.duplicates

    @property
    def resyncs(self) -> int:
        """Times that the sender began another sequence."""
        return self._order.resyncs

    @property
    def foreign(self) -> int:
        """Packets dropped since they were of another sequence that did not go on."""
        return self._order.foreign

    @property
    def overflows(self) -> int:
        """Gaps given up before their time: too many packets were waiting behind them."""
        return self._order.overflows

    def receive(self, packet: Packet, now: float) -> list[Sound]:
        """Take a packet that arrived at `now` seconds; the sounds that follow the last ones."""
        sounds: list[Sound] = []
        for turn in self._order.add(packet, now):
            self._deliver(turn, now, sounds)
        return sounds

    def timer(self, now: float) -> list[Sound]:
        """Repair the gaps that are due."""
        sounds: list[Sound] = []
        for turn in self._order.timer(now):
            self._deliver(turn, now, sounds)
        return sounds

    def _deliver(self, turn: Ordered, now: float, sounds: list[Sound]) -> None:
        packet, missing, fresh = turn
        payload = packet.payload
        if fresh:
            self._begin(packet.timestamp, now, sounds)
        if not payload:  # padding alone: it has a number, but no time
            self._missing += missing
            return
        gap = (packet.timestamp - self._offset - self._end) & 0xFFFFFFFF
        if gap:
            self._bridge(gap, missing + self._missing, payload, now, sounds)
        self._missing = 0
        self._arrived = now
        try:
            samples = self._decoder.decode(payload)
        except CodecError:
            self.undecodable += 1
            self._conceal(self._length, sounds)
            return
        self._length = len(samples) // 2 * self._step
        self._append(samples, self._length, Kind.DECODED, sounds)

    def _append(self, samples: bytes, ticks: int, kind: Kind, sounds: list[Sound]) -> None:
        sounds.append(Sound(samples, self._end, kind))
        self._end += ticks

    def _begin(self, timestamp: int, now: float, sounds: list[Sound]) -> None:
        """A new source goes on where the last one ended; the clock tells a pause between them."""
        if self._started:
            self._decoder.reset()
            pause = round((now - self._arrived) * CLOCK_RATE) - self._length
            if pause >= _RESTART:
                self._silence(pause - pause % _UNIT, sounds)
        else:
            self._started = True
            self._end = timestamp
            self._zero = timestamp - now * CLOCK_RATE
        self._arrived = now
        self._missing = 0
        self._offset = timestamp - self._end

    def _bridge(
        self, gap: int, missing: int, payload: bytes, now: float, sounds: list[Sound]
    ) -> None:
        """Fill the time between the last sample and `payload`: `gap` ticks, modulo 32 bits."""
        if gap >= 1 << 31:  # backwards
            gap -= 1 << 32
        if gap < 0 or not self._affords(gap, now):
            self._offset += gap
            return
        gap -= gap % _UNIT
        if missing and gap:
            self._repair(gap, missing, payload, sounds)
        else:
            self._silence(gap, sounds)

    def _affords(self, gap: int, now: float) -> bool:
        """Whether `gap` ticks may have passed by the clock. Never far off, it forgives drift."""
        zero = self._end - self._arrived * CLOCK_RATE  # if the last packet came in time
        self._zero = min(max(self._zero, zero - self._length - LEAD), zero + LEAD)
        return self._end + gap - self._zero <= now * CLOCK_RATE + LEAD

    def _repair(self, gap: int, missing: int, payload: bytes, sounds: list[Sound]) -> None:
        """Fill `gap` ticks in which `missing` packets were lost, `payload` being the next."""
        length, rest = divmod(gap, missing)
        if rest or length % _UNIT or length > _LONGEST:  # there was a pause too
            length = self._length
        fec = self._decoder.recoverable(payload) * self._step
        if fec > gap:
            fec = 0
        made_up = max(0, min(gap - fec, missing * length - fec, CONCEALED))
        for at in range(0, made_up, length):
            self._conceal(min(length, made_up - at), sounds)
        self._silence(gap - fec - made_up, sounds)
        if fec:
            self.recovered += 1
            samples = self._decoder.recover(payload, fec // self._step)
            self._append(samples, fec, Kind.RECOVERED, sounds)

    def _conceal(self, ticks: int, sounds: list[Sound]) -> None:
        self.concealed += 1
        samples = self._decoder.conceal(ticks // self._step)
        self._append(samples, ticks, Kind.CONCEALED, sounds)

    def _silence(self, ticks: int, sounds: list[Sound]) -> None:
        self.silence_ms += ticks * 1000 // CLOCK_RATE
        if ticks > MAX_SILENCE:
            self._end += ticks
            return
        second = _second_of_silence(self.rate)
        for at in range(0, ticks, CLOCK_RATE):
            piece = min(CLOCK_RATE, ticks - at)
            self._append(second[: piece // self._step * 2], piece, Kind.SILENCE, sounds)


@cache
def _second_of_silence(rate: int) -> bytes:
    return bytes(rate * 2)
