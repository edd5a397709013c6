"""Calls per core with a parrot, by the turn detector it uses.

The rig, the load and the judgement of `tests.bench_media`: the most calls whose packets are at most
20 ms late at p99. Callers take turns: they say two seconds of speech, then listen for three, in
which the parrot says it back; each begins somewhere else in that.
"""

import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench_media import progress, search
from tests.bench_media.callers import write_packets
from tests.bench_media.rig import DIRECTORY, Rig
from tests.bench_media.step import Bench, Step, bench
from tests.bench_media.subjects import Kind
from tests.conversations.effort import Effort
from tests.conversations.mouth import RATE, phrase
from tests.conversations.service import config
from tests.figures.measurement import Findings, Measurement, MeasurementError, expect
from tests.report import Target

VADS = ("silero", "webrtc")
SAID_S, LISTENED_S = 2.0, 3.0
WARM_S = SAID_S + 1.0  # from then on there are replies
FIRST_CALLS = 4
RESOLUTION = 0.08
TARGETS = tuple(Target(f"parrot_calls_per_core_{vad}", ">", 0, "calls") for vad in VADS)

_LOADED, _LEAP = 0.85, 3.0  # share of a core where the limit may be; the longest stride there
_ATTEMPTS = 2
_AS_MANY_AS_COME = 20_000


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("parrot_capacity", TARGETS, partial(measure, effort))]


def measure(effort: Effort) -> Findings:
    values: dict[str, float | str | bool | None] = {}
    detail: dict[str, Any] = {}
    with Rig() as rig:
        for vad in VADS:
            with bench(rig, kind(vad), turns()) as on:
                steps: list[Step] = []
                found = most(on, effort, steps)
                progress.tell(f"parrot, {vad}: {found} calls, {len(steps)} steps")
            expect(found, f"{vad}: not one call held: {steps[-1:]}")
            values[f"parrot_calls_per_core_{vad}"] = found
            detail[vad] = [_shown(step) for step in steps]
    return Findings(values, detail)


def kind(vad: str) -> Kind:
    """A transceiver with a parrot that takes turns by `vad`."""

    def argv(address: str, token: str) -> list[str]:
        host, _, port = address.rpartition(":")
        path = config(
            DIRECTORY,
            (host, int(port)),
            "parrot",
            {"parrot": {"vad": vad}},
            {"control_token": token, "capacity": _AS_MANY_AS_COME},
        )
        return [sys.executable, "-m", "transceiver", "serve", "--config", str(path)]

    return Kind(f"parrot-{vad}", f"parrot, {vad}", "mono, 32 kb/s, complexity 5, FEC", argv)


@cache
def turns() -> Path:
    """What a caller says, again and again."""
    said = phrase(0, SAID_S)
    return write_packets(np.concatenate([said, np.zeros(round(LISTENED_S * RATE))]), "turns.opus")


def most(on: Bench, effort: Effort, steps: list[Step]) -> int:
    """The largest number of calls that held; `steps` gets all that were tried."""
    first = _step(on, effort, min(FIRST_CALLS, effort.most), steps)
    expect(first is not None and first.holds, f"{FIRST_CALLS} calls do not hold: {first}")
    assert first is not None
    load = max(first.load, 0.01)
    guess = round(first.calls * min(_LEAP**2, _LOADED / load))
    return search.most(lambda n: _holds(on, effort, n, steps), guess, effort.most, RESOLUTION)


def _holds(on: Bench, effort: Effort, calls: int, steps: list[Step]) -> bool:
    for _ in range(_ATTEMPTS):
        step = _step(on, effort, calls, steps)
        if step is None:
            return False
        if step.holds:
            return True
        if not (step.nearly_holds or step.generator_is_late):
            return False
    return False


def _step(on: Bench, effort: Effort, calls: int, steps: list[Step]) -> Step | None:
    """None if so many calls do not come about."""
    try:
        step = on.step(calls, effort.capacity_s, WARM_S)
    except MeasurementError as error:
        progress.tell(f"{calls} calls: {error}")
        on.rest()
        return None
    steps.append(step)
    if not step.holds:
        on.rest()
    return step


def _shown(step: Step) -> dict[str, Any]:
    return {
        "calls": step.calls,
        "holds": step.holds,
        "late_p99_ms": round(step.late_p99_ms, 2),
        "loss": step.loss,
        "load": round(step.load, 3),
        "octets": round(step.octets, 1),
        "own_late_p99_ms": round(step.own_late_p99_ms, 2),
    }
