"""What a scenario of `make chaos` is: a fault, the stage it wants, what the calls may lose by it.

A module of scenarios has `scenarios() -> list[Scenario]` and stands in `tests.chaos.run.MODULES`.

    def scenarios() -> list[Scenario]:
        targets = (Target("redis_killed_lost_up", "=", 0, "packets"),)
        return [Scenario("redis_killed", targets, inject, Needs(redis=True))]

    def inject(stage: Stage) -> Fault:
        stage.redis.kill()
        time.sleep(3)
        stage.redis.start()
        return Fault()

The engine has the calls up, watches them for `seconds` without a fault (the control run), calls
`inject` at a random moment, watches on until `seconds` after it began and `SETTLE_S` after it
returned at least, and takes the difference. Nobody else than `inject` judges: what it returns in
`Fault.values` are figures of its own.

Targets are named `<scenario>_<column>`. Columns that every scenario has, see `tests.chaos.account`:

    gap_up_p50 gap_up_max gap_down_p50 gap_down_max   ms, over calls the longest of each
    lost_up lost_down                                 packets of all calls
    lost_share                                        % of the packets of all calls, both ways
    calls_lost                                        that carry nothing at the end
    recovery                                          s, until everything flows again

each of them also of one kind of caller alone, as `gap_up_max_chromium` (lean, chromium, firefox).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tests.report import Target, Value

if TYPE_CHECKING:
    from tests.chaos.stage import Stage

SETTLE_S = 2.0

Agent = Literal["answers", "speaks"]


@dataclass(frozen=True)
class Needs:
    """The stage a scenario wants; those with the same needs share one, one after another."""

    relays: int = 1
    redis: bool = False
    hop: bool = False  # the fault hop between client and router; else a switch
    agent: Agent = "answers"  # "answers": one packet for each of the caller's and none of its own,
    # so silent while none arrives; "speaks": one each 20 ms, whatever comes
    page_recovers: bool = True  # False: browsers' calls without the page's own ICE restarts
    transceivers: int = 1  # namespaces; the first one runs
    keyword: tuple[tuple[str, Any], ...] = ()  # more arguments of `Services`, as sorted items


@dataclass(frozen=True)
class Fault:
    """What `inject` tells. Times are `time.monotonic()`."""

    origin: float | None = None  # gaps and losses count from here; None: from the injection
    values: Mapping[str, Value] = field(default_factory=dict)  # by column: own figures, or better
    detail: Mapping[str, Any] = field(default_factory=dict)  # for the report


@dataclass(frozen=True)
class Scenario:
    name: str
    targets: tuple[Target, ...]
    inject: "Callable[[Stage], Fault]"
    needs: Needs = Needs()
    seconds: float = 8.0  # of the control run, and at least of the run with the fault
    spoils: bool = False  # the stage is of no use to others afterwards
