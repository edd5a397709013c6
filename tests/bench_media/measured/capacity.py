"""Calls per core: echo, mirror, stock aiortc and Pion, in turn; and what a packet costs each."""

import statistics
from dataclasses import asdict
from functools import partial
from typing import Any

from tests.bench_media import go, progress, search
from tests.bench_media.effort import Effort
from tests.bench_media.rig import Rig
from tests.bench_media.step import Bench, Step, bench
from tests.bench_media.subjects import ECHO, MIRROR, PION, STOCK, STOCK_OURS, Kind
from tests.figures.measurement import Findings, Measurement, MeasurementError, expect
from tests.lab.program import ProgramError
from tests.report import Target

FIXED_CALLS = 8
_LEAST_FEC = 0.1  # share of our echo's packets: below it FEC was not on
_LOADED = 0.9  # share of a core at which a server is thought to reach its limit
_NEAR_LIMIT = 0.7  # share from where on it is looked at closely
_LOOKS, _LEAP = 3, 3.0  # on the way there, and how much further each at most
_ATTEMPTS = 3  # at a number that nearly holds, or that the callers were late at
_SIDE_RESOLUTION = 0.1  # of the number, where no target hangs on it
TARGETS = (
    Target("echo_calls_vs_stock", "≥", 5.0, "x"),
    Target("mirror_calls_vs_stock", "≥", 30.0, "x"),
    Target("echo_calls_per_core", ">", 0, "calls"),
    Target("mirror_calls_per_core", ">", 0, "calls"),
)


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("capacity", TARGETS, partial(measure, effort))]


class Record:
    """What one kind of server did."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.fixed: Step | None = None
        self.steps: list[Step] = []
        self.most: list[int] = []  # calls, a round each
        self.profile = ""
        self.error = ""

    @property
    def limit(self) -> str:
        """What else than the server kept the next number from holding; empty as a rule."""
        above = [step for step in self.steps if self.most and step.calls > self.most[-1]]
        nearest = min((step.calls for step in above), default=0)
        late = [step.generator_is_late for step in above if step.calls == nearest]
        return "the callers" if late and all(late) else ""

    def shown(self) -> dict[str, Any]:
        assert self.fixed is not None
        return {
            "name": self.kind.name,
            "codec": self.kind.codec,
            "srtp": self.profile,
            "calls": self.most,
            "limit": self.limit,
            "fixed": _with_cost(self.fixed),
            "steps": [_with_cost(step) for step in self.steps],
        }


def measure(effort: Effort) -> Findings:
    paired, aside = (STOCK, ECHO, MIRROR), (STOCK_OURS, PION)
    records = {kind: Record(kind) for kind in (*paired, *aside)}
    with Rig() as rig:
        for _ in range(effort.rounds):
            for kind in paired:
                _round(rig, records[kind], effort, search.RESOLUTION)
        for _ in range(effort.side_rounds):
            for kind in aside:
                _try_round(rig, records[kind], effort)
    return Findings(
        {
            "echo_calls_vs_stock": _ratio(records[ECHO], records[STOCK]),
            "mirror_calls_vs_stock": _ratio(records[MIRROR], records[STOCK]),
            "echo_calls_per_core": statistics.median(records[ECHO].most),
            "mirror_calls_per_core": statistics.median(records[MIRROR].most),
        },
        {
            "fixed_calls": FIXED_CALLS,
            "packages": go.versions(),
            "subjects": {r.kind.key: r.shown() for r in records.values() if r.most and r.fixed},
            "not_measured": {r.kind.key: r.error for r in records.values() if r.error},
        },
    )


def _try_round(rig: Rig, record: Record, effort: Effort) -> None:
    """What only stands beside does not spoil the rest."""
    try:
        _round(rig, record, effort, _SIDE_RESOLUTION)
    except (MeasurementError, ProgramError) as error:
        record.error = str(error).splitlines()[0]
        progress.tell(f"{record.kind.name}: {record.error}")


def _round(rig: Rig, record: Record, effort: Effort, resolution: float) -> None:
    with bench(rig, record.kind) as on:
        on.warm_up()
        if record.fixed is None:
            record.fixed = on.step(FIXED_CALLS, effort.fixed_s)
            record.profile = on.profile
            on.rest()
            has_fec = record.kind is not ECHO or record.fixed.fec >= _LEAST_FEC
            expect(has_fec, f"{record.kind.name} had FEC in {record.fixed.fec:.0%} of its packets")
        guess = record.most[-1] if record.most else _guess(on, record, effort)
        holds = partial(_holds, on, record, effort)
        found = search.most(holds, guess, effort.most, resolution)
        expect(found, f"{record.kind.name}: not one call held: {record.steps[-1:]}")
        record.most.append(found)
        progress.tell(f"{record.kind.name}: {found} calls, {len(record.steps)} steps so far")


def _guess(on: Bench, record: Record, effort: Effort) -> int:
    """About the limit. A packet costs less the more there are, so a few looks on the way there."""
    assert record.fixed is not None
    calls = max(1, round(_LOADED / record.fixed.cpu_per_call))
    for _ in range(_LOOKS):
        step = _step(on, record, effort, min(calls, effort.most))
        if step is None or not step.holds or step.load > _NEAR_LIMIT:
            break
        calls = round(step.calls * min(_LEAP, _LOADED / step.load))
    return calls


def _holds(on: Bench, record: Record, effort: Effort, calls: int) -> bool:
    for _ in range(_ATTEMPTS):
        step = _step(on, record, effort, calls)
        if step is None:
            return False
        if step.holds:
            return True
        if not (step.nearly_holds or step.generator_is_late):
            return False
    return False


def _step(on: Bench, record: Record, effort: Effort, calls: int) -> Step | None:
    """None if so many calls do not even come about. After an overload the server gets a rest."""
    try:
        step = on.step(calls, effort.talk_s)
    except MeasurementError as error:
        progress.tell(f"{record.kind.name} at {calls} calls: {error}")
        on.rest()
        return None
    record.steps.append(step)
    if not step.holds:
        on.rest()
    return step


def _ratio(ours: Record, stock: Record) -> float:
    pairs = zip(ours.most, stock.most, strict=True)
    return statistics.median(a / b for a, b in pairs)


def _with_cost(step: Step) -> dict[str, Any]:
    return {
        **asdict(step),
        "holds": step.holds,
        "cpu_per_packet_us": step.cpu_per_packet_us,
        "cpu_per_call": step.cpu_per_call,
    }
