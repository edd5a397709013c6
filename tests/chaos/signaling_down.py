"""All of signaling dies under the calls, and comes back later."""

import contextlib
import time

from tests.chaos import new_calls
from tests.chaos.scenario import Fault, Scenario
from tests.chaos.stage import Stage
from tests.lab.program import ProgramError
from tests.report import Target

DOWN_S = 10.0


def scenarios() -> list[Scenario]:
    return [
        Scenario(
            "signaling_down",
            (
                Target("signaling_down_lost_up", "=", 0, "packets"),
                Target("signaling_down_lost_down", "=", 0, "packets"),
                Target("signaling_down_calls_lost", "=", 0, "calls"),
                Target("signaling_down_restarted", "=", True),
                Target("signaling_down_new_calls_failed", "=", 0, "calls"),
            ),
            signaling_down,
        )
    ]


def signaling_down(stage: Stage) -> Fault:
    """Every replica is killed and away for 10 s. After it an ICE restart of each lean call and new
    calls have to work: a call id names its owner to a replica that never saw the call."""
    stage.services.signaling.kill()
    time.sleep(DOWN_S)
    stage.services.start_signaling()
    stage.note("ready")
    restarted = False
    with contextlib.suppress(ProgramError):  # the client ends with a restart that is refused
        stage.callers.lean.ask("restart")
        restarted = True
    failed = new_calls.failed(stage)
    return Fault(
        values={"restarted": restarted, "new_calls_failed": len(failed)},
        detail={"new_calls": failed},
    )
