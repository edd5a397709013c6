"""Clients that live in a browser: see `scenario.mjs` and `pages`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.browser import browser
from tests.figures.measurement import expect
from tests.interop import judge
from tests.interop.cells import Verdicts
from tests.interop.install import HERE
from tests.interop.judge import Seen
from tests.interop.model import REPLY_S
from tests.interop.stage import DIRECTORY, Stage, words
from tests.lab import speech

LIMIT_S = 100.0
SPOKEN_BACK = speech.spoken(REPLY_S)


@dataclass(frozen=True)
class Trial:
    """How a page is tried out; "" is our own. `ends`: reasons that the end may have."""

    page: str
    browser: str = "chromium"
    interrupts: Sequence[str] = ("speech",)
    restarts: bool = False
    down: bool = True  # something comes back
    channel: bool = True  # it speaks Realtime events
    ends: Sequence[str] = ("closed_by_peer",)
    api_key: bool = False  # it is given one, instead of an ephemeral key


def try_out(
    stage: Stage,
    trial: Trial,
    events: Callable[[Seen, Mapping[str, Any]], str | None] | None = None,
    own: Callable[[Mapping[str, Any], Seen], str | None] = lambda report, seen: None,
) -> tuple[Verdicts, Mapping[str, Any]]:
    """Run the page and judge. `events` judges a channel that speaks something else, `own` what the
    client says of itself."""
    report, seen = run(stage, trial)
    tone = trial.browser == "firefox"
    audio = judge.audio_up(seen, None if tone else words())
    if trial.down:
        audio = audio or judge.audio_down(seen, SPOKEN_BACK)
    cut = judge.barge_in(seen)
    if trial.channel:
        told = judge.realtime_events(seen) or own(report, seen)
        cut = cut or judge.interrupted(seen)
    else:
        told = events(seen, report) if events else "no judge"
    if report["faults"]:
        told = f"the page throws: {report['faults'][0]}"
    verdicts: Verdicts = {
        "connects": judge.connects(seen),
        "audio": audio,
        "events": told,
        "barge_in": cut,
        "hang_up": judge.ended(seen, *trial.ends),
        "restart": judge.restarted(seen, report["restart"], down=trial.down),
    }
    return verdicts, detail(report, seen)


def run(stage: Stage, trial: Trial) -> tuple[dict[str, Any], Seen]:
    """One call of the page. Raises `ScenarioError`, `MeasurementError`."""
    if reason := browser.unavailable(trial.browser):
        expect(False, reason)
    services = stage.services
    since = stage.model.mark()
    record = DIRECTORY / f"{trial.page or 'page'}.wav" if _records(trial) else None
    options = {
        "browser": trial.browser,
        "page": trial.page or f"{stage.url}/?raw=1",
        "files": str(stage.pages),
        "url": stage.url,
        "key": stage.api_key if trial.api_key else stage.ephemeral_key,
        "api_key": stage.api_key,
        "audio": str(stage.microphone),
        "record": str(record) if record else None,
        "interrupts": list(trial.interrupts),
        "restarts": trial.restarts,
        "down": trial.down,
    }
    report = browser.run(stage.site.client, "scenario", options, LIMIT_S, HERE)
    expect(report["calls"], f"no call: {report['http']}")
    heard = speech.read_wav(record)[0][0] if record else None
    seen = Seen(
        marks=report["marks"],
        cuts=report["cuts"],
        levels=report["levels"],
        heard=heard,
        arrived=stage.model.heard(since),
        messages=[text for _, text in report["messages"]],
        call=services.call(report["calls"][-1]).json(),
    )
    return report, seen


def _records(trial: Trial) -> bool:
    return trial.browser == "chromium" and trial.down


def detail(report: Mapping[str, Any], seen: Seen) -> dict[str, Any]:
    return {
        "browser": report.get("browser"),
        "http": report.get("http", []),
        "own": report["own"],
        "complaints": report.get("complaints", [])[:10],
        "call": {key: seen.call.get(key) for key in ("state", "reason", "timeline", "packets")},
        "messages": len(seen.messages),
    }
