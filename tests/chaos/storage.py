"""Faults of Redis: nothing that is under way or begins may notice, and it fills by itself after."""

import time
from collections.abc import Callable

from tests.chaos import new_calls
from tests.chaos.scenario import Fault, Needs, Scenario
from tests.chaos.stage import Stage
from tests.figures.measurement import expect
from tests.report import Target

FAULT_S = 3.0  # beside what the new calls take
REFILL_S = 45.0  # a refresh goes round in 40
_NOBODY = ("10.2.0.250", "6379")  # of whom a read-only one is the replica

_NEEDS = Needs(redis=True)


def scenarios() -> list[Scenario]:
    faults = (redis_killed, redis_hung, redis_flushed, redis_full, redis_read_only)
    return [_scenario(fault) for fault in faults]


def _scenario(inject: Callable[[Stage], Fault]) -> Scenario:
    name = inject.__name__
    targets = (
        Target(f"{name}_lost_up", "=", 0, "packets"),
        Target(f"{name}_lost_down", "=", 0, "packets"),
        Target(f"{name}_calls_lost", "=", 0, "calls"),
        Target(f"{name}_new_calls_failed", "=", 0, "calls"),
        Target(f"{name}_refilled", "≤", REFILL_S, "s"),
    )
    return Scenario(name, targets, inject, _NEEDS)


def redis_killed(stage: Stage) -> Fault:
    """SIGKILL, new calls, and an empty one in its place."""
    return _during(stage, stage.redis.kill, stage.redis.start)


def redis_hung(stage: Stage) -> Fault:
    """SIGSTOP: connections stand and nothing answers; SIGCONT."""
    return _during(stage, stage.redis.hang, stage.redis.go_on)


def redis_flushed(stage: Stage) -> Fault:
    """Everything in it is gone at once."""
    return _during(stage, stage.redis.flush, lambda: None)


def redis_full(stage: Stage) -> Fault:
    """No memory for anything more, and nothing is evicted: every write fails."""
    return _during(
        stage,
        lambda: _limit(stage, "1"),
        lambda: _limit(stage, "0"),
    )


def redis_read_only(stage: Stage) -> Fault:
    """It became the replica of a server that nobody reaches; then its own master again."""
    return _during(
        stage,
        lambda: _follow(stage, *_NOBODY),
        lambda: _follow(stage, "NO", "ONE"),
    )


def _limit(stage: Stage, memory: str) -> None:
    with stage.redis.client() as client:
        client.config_set("maxmemory", memory)


def _follow(stage: Stage, host: str, port: str) -> None:
    with stage.redis.client() as client:
        client.replicaof(host, port)


def _during(stage: Stage, break_: Callable[[], None], mend: Callable[[], None]) -> Fault:
    break_()
    try:
        failed = new_calls.failed(stage)
        time.sleep(FAULT_S)
    finally:
        mend()
    stage.note("mended")
    return Fault(
        values={"new_calls_failed": len(failed), "refilled": refilled(stage)},
        detail={"new_calls": failed},
    )


def refilled(stage: Stage) -> float:
    """Seconds until Redis knows every confirmed flow that the relay has."""
    began = time.monotonic()
    while missing := _missing(stage):
        waited = time.monotonic() - began
        expect(
            waited < REFILL_S + 15, f"{len(missing)} flows are not in Redis after {waited:.0f} s"
        )
        time.sleep(0.5)
    return round(time.monotonic() - began, 1)


def _missing(stage: Stage) -> set[str]:
    flows = [flow for flow in stage.services.flows() if flow["state"] == "confirmed"]
    with stage.redis.client() as client:
        known = set(client.scan_iter(match="flow:*", count=1000))
    wanted = {f"flow:{{{stage.services.setup.vips[0].id}:{flow['client']}}}" for flow in flows}
    return wanted - known
