"""Play-out of one call: samples of a model, in chunks of any size, as one frame every 20 ms. Pure.

A slot is 20 ms of the pacer's clock, and a frame's RTP time is its slot's number: a slot that was
skipped moves the time on and takes no sound with it. Talk starts when the cushion is there, or when
its first sample has waited that long. The cushion is one frame, and as much as chunks came late.
"""

from array import array
from typing import NamedTuple

from transceiver.audio.producer import Producer
from transceiver.rtp import FRAME

SLOT_S = 0.02
MAX_CUSHION_S = 0.2
MAX_QUEUE_S = 120.0
STALL_S = 0.25  # dry for longer is a new talk: no cushion would have bridged it
FADE_S = 0.004  # at the edges of sound, where a wave may begin or be cut
SPARE_SLOTS = 100  # of which the lowest queue tells how much too much there is
MAX_SPARE_S = 0.5  # who is further ahead is so on purpose
QUIET = 128  # peak of a frame that may be left out, of 32767: -48 dB


class Frame(NamedTuple):
    """What one slot sends."""

    samples: bytes | None  # 20 ms, 16-bit mono native; None is silence
    timestamp: int  # 48 kHz ticks, 32 bits
    marker: bool  # talk begins


class Downlink:
    """Counts of samples are at `rate`; all but `queued` only grow."""

    def __init__(self, rate: int, first_timestamp: int) -> None:
        self._size = rate // 50 * 2  # bytes of a frame
        self._bytes_per_s = rate * 2
        self._fade = int(rate * FADE_S) * 2
        self._first = first_timestamp
        self._slot0: int | None = None
        self._slot = 0  # the last one,
        self._slot_at = 0.0  # and when it was
        self._queue = bytearray()  # whole samples
        self._half = b""  # a sample
        self._frame = b""  # the last one of the talk
        self._talking = False
        self._waits_since = 0.0
        self._dry_at: float | None = None  # when the talk ran out of sound
        self._producer = Producer()
        self._low, self._low_slots, self._spare = 0, 0, 0  # bytes, slots, bytes
        self.sent = 0  # samples that are in frames
        self.flushed = 0
        self.refused = 0  # beyond 120 s
        self.trimmed = 0  # in quiet frames, to come back to a live producer
        self.underruns = 0  # talk that ran dry and went on
        self.skipped = 0  # slots

    @property
    def queued(self) -> int:
        """Samples that wait."""
        return len(self._queue) // 2

    @property
    def gone(self) -> int:
        """Samples that have left the queue in their turn: sent or trimmed."""
        return self.sent + self.trimmed

    @property
    def queued_s(self) -> float:
        return len(self._queue) / self._bytes_per_s

    @property
    def cushion(self) -> float:
        """Seconds of sound that a talk starts with."""
        return min(MAX_CUSHION_S, SLOT_S + self._producer.late)

    @property
    def drift(self) -> float | None:
        """See `Producer.drift`."""
        return self._producer.drift

    def play(self, samples: bytes, now: float) -> bool:
        """Queue any number of bytes. False: more than 120 s would wait, and none was taken."""
        if self._half:
            samples = self._half + samples
        whole = len(samples) & ~1
        self._half = samples[whole:]
        if len(self._queue) + whole > MAX_QUEUE_S * self._bytes_per_s:
            self.refused += whole // 2
            return False
        if whole:
            self._producer.chunk(whole / self._bytes_per_s, self._margin(now), now)
            self._queue += samples[:whole]
        return True

    def flush(self) -> int:
        """Drop what waits; returns the samples dropped. The next slot fades out."""
        dropped = self.queued
        self._queue.clear()
        self._half = b""
        self._talking, self._dry_at = False, None
        self.flushed += dropped
        return dropped

    def slot(self, n: int, now: float) -> Frame:
        """What slot `n` sends. Numbers grow; those left out were skipped."""
        if self._slot0 is None:
            self._slot0, self._slot = n, n - 1
        self.skipped += n - self._slot - 1
        self._slot, self._slot_at = n, now
        timestamp = (self._first + (n - self._slot0) * FRAME) & 0xFFFFFFFF
        starts = not self._talking and self._is_ready(now)
        if starts:
            self._begin()
        return Frame(self._next(now, starts), timestamp, starts)

    def sleep(self, n: int) -> None:
        """Nobody listened up to slot `n`: those were not skipped."""
        if self._slot0 is not None:
            self._slot = n

    def _margin(self, now: float) -> float | None:
        """Seconds until a chunk of this moment is needed; None: there is no talk that needs it."""
        if self._talking:
            return self.queued_s + max(0.0, SLOT_S - (now - self._slot_at))
        if self._queue:
            return None
        self._waits_since = now
        dry, self._dry_at = self._dry_at, None
        if dry is None or now - dry > STALL_S:
            self._producer.end()
            return None
        self.underruns += 1
        return dry - now

    def _is_ready(self, now: float) -> bool:
        return bool(self._queue) and (
            self.queued_s >= self.cushion or now - self._waits_since >= self.cushion
        )

    def _begin(self) -> None:
        self._talking = True
        self._low, self._low_slots, self._spare = len(self._queue), 0, 0

    def _next(self, now: float, starts: bool) -> bytes | None:
        """The samples of this slot."""
        if not self._talking:
            return self._fade_out()
        frame = self._take()
        if self._spare and self._may_trim(frame):
            self.sent -= self._size // 2
            self.trimmed += self._size // 2
            self._spare = max(0, self._spare - self._size)
            self._producer.nearer(SLOT_S)
            frame = self._take()
        self._watch_queue()
        missing = self._size - len(frame)
        if missing:
            self._talking = False
            self._dry_at = now + len(frame) / self._bytes_per_s
            self._frame = frame or self._frame
            return (frame + (self._fade_out() or b"")).ljust(self._size, b"\0")[: self._size]
        self._frame = frame
        return _faded_in(frame, self._fade) if starts else frame

    def _take(self) -> bytes:
        """Up to a frame of the queue."""
        frame = bytes(self._queue[: self._size])
        del self._queue[: self._size]
        self.sent += len(frame) // 2
        return frame

    def _may_trim(self, frame: bytes) -> bool:
        spare = self._spare / self._bytes_per_s
        if not self.cushion < spare <= MAX_SPARE_S or self.drift is None:
            return False
        return len(self._queue) > self._size and _is_quiet(frame)

    def _watch_queue(self) -> None:
        """What never left the queue for a while is spare."""
        self._low = min(self._low, len(self._queue))
        self._low_slots += 1
        if self._low_slots == SPARE_SLOTS:
            self._spare, self._low, self._low_slots = self._low, len(self._queue), 0

    def _fade_out(self) -> bytes | None:
        """The end of the last frame, backwards to silence: the wave goes on and no click is heard.
        Once; None afterwards."""
        frame, self._frame = self._frame, b""
        if not frame:
            return None
        end = array("h", frame[-self._fade :])
        end.reverse()
        count = len(end)
        faded = array("h", (value * (count - n) // count for n, value in enumerate(end)))
        return faded.tobytes().ljust(self._size, b"\0")


def _faded_in(frame: bytes, size: int) -> bytes:
    start = array("h", frame[:size])
    count = len(start)
    return (
        array("h", (value * n // count for n, value in enumerate(start))).tobytes() + frame[size:]
    )


def _is_quiet(frame: bytes) -> bool:
    values = array("h", frame)
    return max(values, default=0) < QUIET and min(values, default=0) > -QUIET
