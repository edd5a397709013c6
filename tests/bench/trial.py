"""One trial: so many frames at such a rate into a subject, and how many came out."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.bench.generator import Generator
from tests.bench.rig import Rig
from tests.bench.sink import Seen, Sink
from tests.bench.subjects.base import Subject
from tests.figures.measurement import expect

_GRACE_S = 0.03  # after the last frame was sent
_SETTLE_S, _PROCESS_SETTLE_S = 0.005, 0.15  # between two looks at counters that may still run
_PATIENCE_S = 3.0
_PROVED, _PROOF_RATE, _PROOFS = 10_000, 10_000.0, 3  # clients, frames a second, times to try


@dataclass(frozen=True)
class Trial:
    """What became of the frames of one trial."""

    sent: int
    seen: int
    on_time: int  # of them: not from a queue that had grown
    seconds: float  # of sending

    @property
    def rate(self) -> float:
        """Frames offered a second."""
        return self.sent / self.seconds if self.seconds else 0.0

    @property
    def loss(self) -> float:
        """Share of the frames."""
        return 1 - self.seen / self.sent if self.sent else 0.0

    @property
    def late(self) -> float:
        """Share of the frames that were lost or had to queue for long."""
        return 1 - self.on_time / self.sent if self.sent else 0.0


class Stage:
    """A subject with the generator and the counters that its legs need, compiled once."""

    def __init__(self, rig: Rig, subject: Subject) -> None:
        self.subject = subject
        self._open = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            frames = [(leg.frame, leg.enters) for leg in subject.legs]
            self.generator = Generator(rig, frames)
            stack.callback(self.generator.close)
            self._sinks = [Sink(rig, leg.leaves, leg.watch) for leg in subject.legs]
            for sink in self._sinks:
                stack.callback(sink.close)
            stack.callback(subject.stop)
            subject.start()
            self._open = stack.pop_all()

    @contextlib.contextmanager
    def on(self, flows: int) -> Iterator[None]:
        """The subject carries `flows` clients' frames; no other one does."""
        with contextlib.ExitStack() as stack:
            for sink in self._sinks:
                stack.callback(sink.detach)
                sink.attach()
            stack.callback(self.subject.rest)
            self.subject.carry(flows)
            self._prove(flows)
            yield

    def _prove(self, flows: int) -> None:
        """Every client gets through: else what comes later is not what it is taken for."""
        count = min(flows, _PROVED)
        for _ in range(_PROOFS):
            how = {"rate": _PROOF_RATE, "flows": flows, "in_order": True, "first": 0}
            trial = self._run(max(count, 1), **how)
            if not trial.loss:
                return
        expect(False, f"{self.subject.name} carried {trial.seen} of {trial.sent} clients")

    def trial(self, seconds: float, rate: float, flows: int, **how: Any) -> Trial:
        """Offer `rate` for `seconds`. The subject is `on`."""
        return self._run(round(seconds * rate), rate=rate, flows=flows, **how)

    def flood(self, frames: int, flows: int) -> Trial:
        """Offer `frames` as fast as they go."""
        return self._run(frames, rate=None, flows=flows)

    def delays(self) -> list[int]:
        return [sum(column) for column in zip(*(s.delays() for s in self._sinks), strict=True)]

    def close(self) -> None:
        self._open.close()

    def _run(self, frames: int, **how: Any) -> Trial:
        self.subject.keep_alive(how["flows"])
        before = self._seen()
        sent = self.generator.send(frames, **how)
        time.sleep(_GRACE_S)
        on_time = _since(before, self._seen())
        seen = _since(before, self._settled())
        for leg, each in zip(self.subject.legs, seen, strict=True):
            size = len(leg.frame.data) + leg.grows
            wrong = f"{self.subject.name}: {each} is not of {size}-byte frames"
            expect(each.octets == each.packets * size, wrong)
        return Trial(sent.frames, _packets(seen), _packets(on_time), sent.seconds)

    def _seen(self) -> list[Seen]:
        return [sink.seen() for sink in self._sinks]

    def _settled(self) -> list[Seen]:
        """The counters once they stand still."""
        deadline = time.monotonic() + _PATIENCE_S
        last = self._seen()
        while True:
            time.sleep(_PROCESS_SETTLE_S if self.subject.pids() else _SETTLE_S)
            seen = self._seen()
            if seen == last or time.monotonic() > deadline:
                return seen
            last = seen


def _since(before: list[Seen], now: list[Seen]) -> list[Seen]:
    return [after - then for after, then in zip(now, before, strict=True)]


def _packets(seen: list[Seen]) -> int:
    return sum(each.packets for each in seen)
