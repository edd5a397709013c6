"""Clients whose calls are driven by Python: see `talk` and `conversation`."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.figures.measurement import MeasurementError, expect
from tests.interop import judge
from tests.interop.cells import Verdicts
from tests.interop.in_browser import SPOKEN_BACK, detail
from tests.interop.judge import Seen
from tests.interop.stage import DIRECTORY, Stage, words
from tests.lab import speech

LIMIT_S = 90.0


@dataclass(frozen=True)
class Trial:
    """`options` for `tests.interop.talk`; `allowed`: codes of errors that the trial asks for."""

    options: Mapping[str, Any]
    interrupts: Sequence[str] = ("speech",)
    restarts: bool = False
    channel: bool = True
    ends: Sequence[str] = ("closed_by_peer",)
    allowed: Sequence[str] = field(default=())


def try_out(stage: Stage, trial: Trial) -> tuple[Verdicts, Mapping[str, Any]]:
    """One call, judged. Raises `MeasurementError`."""
    services = stage.services
    since = stage.model.mark()
    name = "-".join(str(trial.options[key]) for key in ("client", "sdk") if key in trial.options)
    record = DIRECTORY / f"{name}.wav"
    options = {
        "url": stage.url,
        "key": stage.api_key,
        "microphone": str(stage.microphone),
        "record": str(record),
        "interrupts": list(trial.interrupts),
        "restarts": trial.restarts,
        **trial.options,
    }
    if options.get("sdk") == "npm":
        options |= {"url": stage.tls_url, "certificate": str(stage.certificate)}
    command = [sys.executable, "-m", "tests.interop.talk", json.dumps(options)]
    done = stage.site.client.run(command, check=False, timeout_s=LIMIT_S)
    report = _read(done.stdout, done.stderr)
    seen = Seen(
        marks=report["marks"],
        cuts=report["cuts"],
        levels=report["levels"],
        heard=speech.read_wav(record)[0][0],
        arrived=stage.model.heard(since),
        messages=report["messages"],
        call=services.call(report["calls"][-1]).json(),
    )
    return _verdicts(trial, report, seen), detail(report, seen)


def _verdicts(trial: Trial, report: Mapping[str, Any], seen: Seen) -> Verdicts:
    told = judge.realtime_events(seen, allowed=trial.allowed) if trial.channel else None
    return {
        "connects": judge.connects(seen) or _secret(report["own"]),
        "audio": judge.audio_up(seen, words()) or judge.audio_down(seen, SPOKEN_BACK),
        "events": told,
        "barge_in": judge.barge_in(seen) or (judge.interrupted(seen) if trial.channel else None),
        "hang_up": judge.ended(seen, *trial.ends),
        "restart": judge.restarted(seen, report["restart"]),
    }


def _secret(own: Mapping[str, Any]) -> str | None:
    """An SDK that asked for an ephemeral key has one."""
    kind = own.get("secret", {}).get("kind", "ek_")
    return None if kind == "ek_" else f"its client secret begins {kind!r}"


def _read(output: str, errors: str) -> dict[str, Any]:
    lines = output.splitlines()
    expect(lines, f"the client said nothing: {errors[-2000:]}")
    report: dict[str, Any] = json.loads(lines[-1])
    if "error" in report:
        raise MeasurementError(report["error"])
    return report
