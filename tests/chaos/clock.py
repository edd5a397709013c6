"""The machine's clock is stepped an hour ahead, then an hour back, for two seconds each.

It is really stepped, for everything on the machine: `CLOCK=keep` in the environment leaves it, and
the row fails. A guard process puts it right should whoever stepped it die.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator

from tests.chaos import new_calls, storage
from tests.chaos.scenario import Fault, Needs, Scenario
from tests.chaos.stage import Stage
from tests.figures.measurement import expect
from tests.report import Target

HOUR_S = 3600
HELD_S = 2.0
_GUARD_S = 8  # after which the guard puts it right, whatever is the matter

# Waits until its stdin is closed, then sets the clock to what the monotonic one says it is.
_GUARD = """
import select, sys, time
offset = int(sys.argv[1])
select.select([sys.stdin], [], [], float(sys.argv[2]))
if abs(time.time_ns() - time.monotonic_ns() - offset) > 1_000_000_000:
    time.clock_settime_ns(time.CLOCK_REALTIME, time.monotonic_ns() + offset)
"""


def scenarios() -> list[Scenario]:
    return [
        Scenario(
            "clock_stepped",
            (
                Target("clock_stepped_lost_up", "=", 0, "packets"),
                Target("clock_stepped_lost_down", "=", 0, "packets"),
                Target("clock_stepped_calls_lost", "=", 0, "calls"),
                Target("clock_stepped_new_calls_failed", "=", 0, "calls"),
                Target("clock_stepped_refilled", "≤", storage.REFILL_S, "s"),
            ),
            clock_stepped,
            Needs(redis=True),
        )
    ]


def clock_stepped(stage: Stage) -> Fault:
    """An hour ahead, back, an hour behind, back; new calls after each. What Redis keeps expires by
    its own clock, so ahead it forgets everything at once: flows have to come back."""
    expect(os.environ.get("CLOCK") != "keep", "CLOCK=keep: the clock was not stepped")
    failed = list[str]()
    for step in (HOUR_S, -HOUR_S):
        with stepped(step):
            stage.note(f"stepped {step:+d} s")
            time.sleep(HELD_S)
        stage.note("right again")
        failed += new_calls.failed(stage)
    return Fault(
        values={"new_calls_failed": len(failed), "refilled": storage.refilled(stage)},
        detail={"new_calls": failed},
    )


@contextlib.contextmanager
def stepped(seconds: int) -> Iterator[None]:
    """The clock is wrong by `seconds` inside, and right again afterwards. Raises `PermissionError`
    without CAP_SYS_TIME."""
    offset = time.time_ns() - time.monotonic_ns()
    print(f"stepping this machine's clock by {seconds:+d} s for some seconds", file=sys.stderr)
    guard = subprocess.Popen(
        [sys.executable, "-c", _GUARD, str(offset), str(_GUARD_S)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _set(offset + seconds * 1_000_000_000)
        yield
    finally:
        _set(offset)
        guard.communicate()


def _set(offset: int) -> None:
    """The wall clock, as nanoseconds from the monotonic one."""
    time.clock_settime_ns(time.CLOCK_REALTIME, time.monotonic_ns() + offset)
