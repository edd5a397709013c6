"""An hour of talk with pauses through pacer and play-out, in compressed time.

A model speaks in chunks of any size, with a clock and a jitter of its own, or far faster than one
can listen; the pacer's loop wakes late now and then. Each frame's RTP time is held against the
clock, and its samples against what the model said: each once, in order.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tests.figures.measurement import Findings, Measurement, expect
from tests.report import Target
from transceiver.audio.downlink import FADE_S, Downlink
from transceiver.audio.pacer import Pacer
from transceiver.lateness import Lateness
from transceiver.rtp import CLOCK_RATE, FRAME

BEGAN_S = 1000.0  # by the clock
HOUR_S = 3600.0
RATE = 24000
DRIFT = 300e-6  # of the model's clock, either way
JITTER_S = 0.06  # of its chunks
STALL = 1 / 2000  # share of the loop's turns that are late by up to `STALL_S`
STALL_S = 0.08
FIRST_TIMESTAMP = 0x100000000 - 10 * CLOCK_RATE  # wraps early
TARGETS = (Target("long_talk_time_error", "≤", 20, "ms"),)

_LOUD = (1000, 21000)  # no sample of the talk is quiet: all are distinct for nearly a second


def measurements() -> list[Measurement]:
    return [Measurement("long_talk", TARGETS, measure)]


def measure(seconds: float = HOUR_S, seed: int = 1) -> Findings:
    source = random.Random(seed)
    clock = Clock()
    listener = Listener(clock)
    pacer = Pacer(lambda: clock.now, Lateness())
    pacer.join(listener)
    due = clock.now
    for at, chunk in talk(seconds, source):
        while due <= at:
            clock.now = max(clock.now, due + _lateness(source))
            due = pacer.tick(clock.now)
        clock.now = max(clock.now, at)
        listener.play(chunk)
    while listener.downlink.queued:
        clock.now = max(clock.now, due)
        due = pacer.tick(clock.now)
    downlink = listener.downlink
    expect(not listener.fault, listener.fault)
    expect(not listener.waiting, f"{len(listener.waiting)} bytes were never sent")
    return Findings(
        {"long_talk_time_error": round(listener.worst_s * 1e3, 3)},
        {
            "hours": round((clock.now - BEGAN_S) / HOUR_S, 3),
            "frames": listener.frames,
            "talks": listener.talks,
            "said_s": round(listener.said / RATE, 1),
            "slots_skipped": downlink.skipped,
            "underruns": downlink.underruns,
            "most_queued_while_live_ms": round(listener.most_live_s * 1e3, 1),
            "longest_cushion_ms": round(listener.most_cushion_s * 1e3, 1),
        },
    )


def _lateness(source: random.Random) -> float:
    """Of one turn of the loop."""
    return source.uniform(0, STALL_S) if source.random() < STALL else source.expovariate(2000)


@dataclass(eq=False)
class Clock:
    now: float = BEGAN_S


class Talk(bytes):
    """A chunk of sound; `live`: it came as fast as one speaks."""

    live: bool = True


def talk(seconds: float, source: random.Random) -> Iterator[tuple[float, Talk]]:
    """Chunks of any number of bytes and their moments, later than `BEGAN_S`."""
    at, number = BEGAN_S, 0
    while at < BEGAN_S + seconds:
        at += source.uniform(0.4, 6.0)
        began, length = at, round(source.uniform(1.0, 20.0) * RATE)
        drift, size = source.uniform(-DRIFT, DRIFT), source.choice((331, 960, 1919, 4801, 9600))
        live = source.random() < 0.8
        speed = 1 + drift if live else 8.0
        sound = _sound(number, length)
        number += length
        for start in range(0, len(sound), size):
            chunk = Talk(sound[start : start + size])
            chunk.live = live
            ready = began + (start + len(chunk)) / (2 * RATE) / speed
            at = max(at, ready + source.uniform(0, JITTER_S))
            yield at, chunk


def _sound(first: int, length: int) -> bytes:
    low, high = _LOUD
    values = low + (np.arange(first, first + length, dtype=np.int64) % (high - low))
    return values.astype(np.int16).tobytes()


@dataclass(eq=False)
class Listener:
    """The call, as pacer and network see it: judges each frame."""

    clock: Clock
    downlink: Downlink = field(default_factory=lambda: Downlink(RATE, FIRST_TIMESTAMP))
    waiting: bytearray = field(default_factory=bytearray)  # said and not yet sent
    worst_s: float = 0.0
    frames: int = 0
    talks: int = 0
    said: int = 0
    most_live_s: float = 0.0
    most_cushion_s: float = 0.0
    fault: str = ""  # the first one; the pacer keeps exceptions to itself
    _began: float = 0.0
    _rtp: int = 0
    _live: bool = True  # nothing waits that came faster than one speaks

    def play(self, chunk: Talk) -> None:
        expect(not self.fault, self.fault)
        expect(self.downlink.play(chunk, self.clock.now), "the queue was full")
        self.waiting += chunk
        self.said += len(chunk) // 2
        self._live = self._live and chunk.live

    def slot(self, n: int, now: float) -> None:
        """For the pacer."""
        before = self.downlink.sent
        frame = self.downlink.slot(n, now)
        self._judge_time(frame.timestamp, now)
        self._judge_sound(frame.samples, self.downlink.sent - before, frame.marker)
        self.talks += frame.marker
        self.most_cushion_s = max(self.most_cushion_s, self.downlink.cushion)
        self._live = self._live or not self.downlink.queued
        if self._live:
            self.most_live_s = max(self.most_live_s, self.downlink.queued_s)

    def crash(self) -> None:
        self._expect(False, "the play-out raised")

    def _judge_time(self, timestamp: int, now: float) -> None:
        if not self.frames:
            self._began, self._rtp = now, timestamp - FRAME
        step = (timestamp - self._rtp) & 0xFFFFFFFF
        self._expect(0 < step < CLOCK_RATE and step % FRAME == 0, f"a step of {step} ticks")
        self._rtp += step
        self.frames += 1
        rtp_s = (self._rtp - FIRST_TIMESTAMP) / CLOCK_RATE
        self.worst_s = max(self.worst_s, abs(rtp_s - (now - self._began)))

    def _judge_sound(self, samples: bytes | None, taken: int, starts: bool) -> None:
        """The samples that this frame took of the queue; where a talk begins they are faded."""
        said, size = self.waiting[: 2 * taken], 2 * taken
        del self.waiting[:size]
        faded = 2 * round(FADE_S * RATE) if starts else 0
        self._expect(not taken or samples is not None, "samples were taken and not sent")
        if samples is not None:
            self._expect(samples[faded:size] == said[faded:], "samples that nobody said")

    def _expect(self, happened: object, what: str) -> None:
        self.fault = self.fault or ("" if happened else what)
