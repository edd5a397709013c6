"""One step: so many calls talk for some seconds, and what came back when."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from tests.bench_media.callers import WARM_S, Callers
from tests.bench_media.rig import Rig
from tests.bench_media.subjects import Kind, Subject
from tests.figures.measurement import expect

PACKETS_PER_S = 50
LATE_MS = 20.0  # p99 of arrival less the place that the call's first answer gives it
LOST = 0.001  # share
_NEAR = 5
_OWN_LATE_MS = 5.0  # the generator's p99: beyond it, it is the generator that is measured
_LEAST_OCTETS = 3  # of payload a packet: less is silence of a kind
_REST_S, _LOOK_S = 5.0, 0.3
_IDLE = 0.1  # share of a core


@dataclass(frozen=True)
class Step:
    """`seconds` and `cpu_s` are of the whole talk, the rest is without its begin and its end."""

    calls: int
    late_p50_ms: float
    late_p99_ms: float
    loss: float  # share
    trip_p50_ms: float
    trip_p99_ms: float
    seconds: float
    cpu_s: float  # of the server
    packets: int  # that came back in all
    octets: float  # of payload a packet
    fec: float  # share of the packets that carry FEC data
    own_late_p99_ms: float
    own_cpu: float  # share of a core that the callers took

    @property
    def holds(self) -> bool:
        return self.late_p99_ms <= LATE_MS and self.loss <= LOST

    @property
    def nearly_holds(self) -> bool:
        """So near that a busy machine may be to blame."""
        return self.late_p99_ms <= _NEAR * LATE_MS and self.loss <= _NEAR * LOST

    @property
    def generator_is_late(self) -> bool:
        return self.own_late_p99_ms > _OWN_LATE_MS

    @property
    def load(self) -> float:
        """Share of a core that the server took."""
        return self.cpu_s / self.seconds

    @property
    def cpu_per_packet_us(self) -> float:
        return self.cpu_s / max(1, self.packets) * 1e6

    @property
    def cpu_per_call(self) -> float:
        """Share of a core that a call takes which loses nothing."""
        return self.cpu_per_packet_us / 1e6 * PACKETS_PER_S


# As the callers name them too.
_TAKEN = tuple(
    field.name for field in fields(Step) if field.name not in ("calls", "cpu_s", "packets")
)


class Bench:
    """A server with callers beside it."""

    def __init__(self, subject: Subject, callers: Callers) -> None:
        self.subject = subject
        self.callers = callers
        self.profile = ""  # of SRTP

    def step(self, calls: int, seconds: float, warm_s: float = WARM_S) -> Step:
        """Connect, talk, hang up. The first `warm_s` are not judged. Raises `MeasurementError` if
        a call does not come about."""
        made = self.callers.connect(calls)
        try:
            made.all_there(calls)
            self.profile = made.profile
            before = self.subject.cpu_s()
            got = self.callers.talk(seconds, warm_s=warm_s)
            cpu_s = self.subject.cpu_s() - before
        finally:
            self.callers.close()
        self.subject.expect_running()
        is_heard = got["octets"] >= _LEAST_OCTETS or not got["back"]
        expect(is_heard, f"{self.subject.kind.name} sent nothing that one could hear")
        return Step(calls=calls, cpu_s=cpu_s, packets=got["back"], **{k: got[k] for k in _TAKEN})

    def rest(self) -> None:
        """Wait until the server has done what an overload left it to do, for a while."""
        deadline = time.monotonic() + _REST_S
        before = self.subject.cpu_s()
        while time.monotonic() < deadline:
            time.sleep(_LOOK_S)
            after = self.subject.cpu_s()
            if after - before < _IDLE * _LOOK_S:
                return
            before = after

    def warm_up(self, calls: int = 4) -> None:
        """What a process loads and allocates once is not for a figure of a call."""
        self.step(calls, 1.0)


@contextmanager
def bench(rig: Rig, kind: Kind, packets: Path | None = None) -> Iterator[Bench]:
    """A new process of `kind`. `packets`: what its callers say, see `Callers`."""
    with Subject(rig, kind) as subject, Callers(rig, subject, packets) as callers:
        yield Bench(subject, callers)
