"""The two people of the demo: an aiortc client and Chromium, both saying the same passage.

I/O: each runs its client in the client's box, waits for it, and returns what it saw.
"""

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.browser import browser
from tests.demo.talk import Talk
from tests.lab import speech
from tests.lab.ear import correlate
from tests.lab.services import Services

_AROUND_S = 60  # for everything of a call but talking


class ClientError(RuntimeError):
    """A client made no call, or did not say what became of it."""


def aiortc(services: Services, seconds: float, directory: Path) -> Talk:
    """Raises `ClientError`."""
    site, recording = services.site, directory / "heard-aiortc.wav"
    argv = [sys.executable, "-m", "tests.clients.aiortc_client", "--url", site.calls_url]
    argv += ["--seconds", str(seconds), "--record", str(recording)]
    argv += ["--loopback"] if site.dev_local else []
    done = site.client.run(argv, check=False, timeout_s=seconds + _AROUND_S)
    if done.returncode:
        raise ClientError(f"aiortc client: {done.stdout}{done.stderr}".strip())
    report = json.loads(done.stdout)
    heard = speech.read_wav(recording)[0][0]
    lag_ms = correlate(speech.spoken(seconds), heard, speech.RATE).lag_ms
    return Talk(
        client="aiortc",
        version=f"aiortc {metadata.version('aiortc')}",
        setup_ms={name.removesuffix("_ms"): ms for name, ms in report["timeline"].items()},
        sent=report["packets"]["sent"],
        received=report["packets"]["received"],
        lost=report["packets"]["lost"],
        far=_far(report["call"], "aiortc"),
        remote=report["remote"],
        heard=heard,
        echo_delay_ms=report["ear_after_voice_ms"] + lag_ms,
    )


def chromium(services: Services, seconds: float, directory: Path) -> Talk:
    """Raises `ClientError`, `ScenarioError`."""
    voice, recording = directory / "spoken.wav", directory / "heard-chromium.wav"
    speech.write_wav(voice, speech.spoken(seconds + 5))
    options = {
        "url": f"{services.site.base_url}/",
        "browser": "chromium",
        "seconds": seconds,
        "audio": str(voice),
        "record": str(recording),
        "screenshot": str(directory / "page.png"),
        "loopback": services.site.dev_local,
    }
    report = browser.run(services.site.client, "call", options, seconds + _AROUND_S)
    if not report["heard"]:
        raise ClientError(f"chromium heard nothing: {report['talking']}")
    talking, drained = report["talking"], report["drained"]
    timeline = talking["timeline"]
    said, heard = speech.read_wav(recording)[0]
    return Talk(
        client="chromium",
        version=report["browser"],
        setup_ms={
            phase: round(at - timeline["click"], 1)
            for phase, at in timeline.items()
            if phase != "click" and at is not None
        },
        sent=drained["sent"],
        received=drained["received"],
        lost=drained["lost"],
        far=_far(report["far"], "chromium"),
        remote=talking["selected"]["remote"],
        heard=heard,
        echo_delay_ms=correlate(said, heard, speech.RATE).lag_ms,
        more={
            "concealed_percent": round(100 * talking["concealed"] / max(1, talking["samples"]), 2),
            "audio_energy": talking["energy"],
            "dtls": talking["dtls"],
            "data_channel": talking["sctp"],
            "page_faults": report["faults"],
        },
    )


def _far(call: dict[str, Any] | None, client: str) -> dict[str, Any]:
    if call is None:
        raise ClientError(f"{client}: signaling did not say what the transceiver saw of the call")
    return call
