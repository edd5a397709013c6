"""Play scenarios: on a stage that those of the same needs share, each beside its control run."""

import contextlib
import inspect
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tests.chaos.account import DRAIN_S, Account, Caller, Window, account, columns, totals
from tests.chaos.scenario import SETTLE_S, Fault, Needs, Scenario
from tests.chaos.stage import Stage, describe, stage
from tests.figures.measurement import Findings, Measurement, MeasurementError
from tests.lab.program import ProgramError
from tests.report import Value

LEAN_CALLS = 20
_SPREAD_S = 1.0  # the moment of a fault, after its control run


@dataclass(frozen=True)
class Cast:
    """Who plays where."""

    prefix: str
    seed: int
    lean: int = LEAN_CALLS
    browsers: bool = True


class Theatre:
    """Keeps the stage between scenarios of the same needs. A context manager."""

    def __init__(self, cast: Cast) -> None:
        self._cast = cast
        self._open = contextlib.ExitStack()
        self._stage: Stage | None = None

    def __enter__(self) -> "Theatre":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def measurement(self, scenario: Scenario) -> Measurement:
        return Measurement(scenario.name, scenario.targets, lambda: self.play(scenario))

    def beside(self, measurement: Measurement) -> Measurement:
        """It has a place of its own: the stage is cleared away before."""

        def measure() -> Findings:
            self._close()
            return measurement.measure()

        return replace(measurement, measure=measure)

    def play(self, scenario: Scenario) -> Findings:
        """Raises whatever `inject` does; the stage is left then, as one that a fault spoilt."""
        try:
            found = play(*self._stage_for(scenario.needs), scenario)
        except BaseException:
            self._close()
            raise
        if scenario.spoils or found.detail["calls_lost"]:
            self._close()
        return found

    def _stage_for(self, needs: Needs) -> tuple[Stage, list[Caller]]:
        """A stage with its calls, all of them alive."""
        if self._stage is not None and self._stage.needs == needs:
            with contextlib.suppress(MeasurementError):  # some did not outlive the last fault
                return self._stage, self._stage.calls()
        self._close()
        cast = self._cast
        self._stage = self._open.enter_context(
            stage(needs, cast.prefix, cast.seed, cast.lean, cast.browsers)
        )
        return self._stage, self._stage.calls()

    def _close(self) -> None:
        self._stage = None
        try:
            self._open.close()
        except (ProgramError, OSError) as error:  # no fault of the scenario that comes next
            print(f"clearing the stage: {error}", file=sys.stderr)


def ordered(scenarios: Sequence[Scenario], seed: int) -> list[Scenario]:
    """Shuffled by `seed`, those of the same needs together, those that spoil their stage last."""
    source = random.Random(seed)
    groups: dict[Needs, list[Scenario]] = {}
    for each in scenarios:
        groups.setdefault(each.needs, []).append(each)
    shuffled = source.sample(list(groups.values()), len(groups))
    return [
        each
        for group in shuffled
        for each in sorted(source.sample(group, len(group)), key=lambda one: one.spoils)
    ]


def play(place: Stage, calls: list[Caller], scenario: Scenario) -> Findings:
    """The control run, the fault, and the difference."""
    place.random = random.Random(f"{place.lab.seed}/{scenario.name}")
    place.moments.clear()
    control_began = time.monotonic()
    time.sleep(scenario.seconds + DRAIN_S)
    control_ended = time.monotonic()
    time.sleep(place.random.uniform(0, _SPREAD_S))
    began = place.note("fault")
    fault = scenario.inject(place)
    returned = place.note("injected")
    time.sleep(max(began + scenario.seconds, returned + SETTLE_S) - returned + DRAIN_S)
    ended = time.monotonic()

    origin = began if fault.origin is None else fault.origin
    window = Window(origin, ended, exact=fault.origin is not None)
    same_length = max(control_began, control_ended - (ended - origin))
    control = account(calls, place.tap.seen, Window(same_length, control_ended))
    usual_s = max(way.gap_s for each in control for way in (each.up, each.down))
    counted = account(calls, place.tap.seen, window, usual_s)
    whole = account(calls, place.tap.seen, Window(began, ended), usual_s)
    return _findings(place, scenario, fault, began, (control, counted, whole))


def _findings(
    place: Stage,
    scenario: Scenario,
    fault: Fault,
    began: float,
    accounts: tuple[list[Account], list[Account], list[Account]],
) -> Findings:
    control, counted, whole = accounts
    known: dict[str, Value] = {**columns(control, counted, began), **fault.values}
    prefix = f"{scenario.name}_"
    wanted = [target.name.removeprefix(prefix) for target in scenario.targets]
    return Findings(
        {prefix + column: known[column] for column in wanted if column in known},
        {
            "stage": describe(scenario.needs),
            "how": inspect.getdoc(scenario.inject) or "",
            "calls": len(counted),
            "calls_lost": known["calls_lost"],
            "difference": known,
            "control": totals(control),
            "fault": totals(counted),
            "whole": totals(whole),
            "moments_s": {what: round(at - began, 3) for what, at in place.moments.items()},
            **fault.detail,
            "accounts": [_short(each) for each in counted],
            "callers": place.callers.reports(),
        },
    )


def _short(one: Account) -> dict[str, Any]:
    ways = {name: asdict(way) for name, way in (("up", one.up), ("down", one.down))}
    for way in ways.values():
        way["gap_ms"] = round(1e3 * way.pop("gap_s"), 1)
        del way["last_outage"]
    return {"kind": one.kind, **ways}
