"""The clients of the suite, in the order of the page."""

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import metadata
from typing import Any

from tests.interop import in_browser, in_python, rtvi
from tests.interop.cells import COLUMNS, NO_RESTART, Client
from tests.interop.in_browser import Trial
from tests.interop.judge import Seen
from tests.interop.packages import version
from tests.interop.stage import Stage
from tests.lab import topology

NO_CHANNEL = "n/a: WHIP has no channel"
SDK: dict[str, Any] = {"host": topology.CLIENT, "certificate": None}
SIDEBAND: dict[str, Any] = {
    "interrupts": ("call", "speech"),
    "ends": ("hangup",),
    "allowed": ("conversation_already_has_active_response",),
}
ONE_WAY = "n/a: it publishes only, so there is nothing to cut"


def clients(stage: Stage) -> list[Client]:
    def page(trial: Trial, **judges: Any) -> Any:
        return partial(in_browser.try_out, stage, trial, **judges)

    def talk(**trial: Any) -> Any:
        return partial(in_python.try_out, stage, in_python.Trial(**trial))

    no_restart = {"restart": NO_RESTART}
    return [
        Client(
            "agents_realtime",
            f"{version('@openai/agents-realtime')}, Chromium",
            page(Trial("agents", interrupts=("call", "speech")), own=_agents),
            no_restart,
        ),
        Client(
            "openai_webrtc",
            f"{version('openai')} (npm), WebRTC, Chromium",
            page(Trial("openai_webrtc", interrupts=("call", "speech")), own=_no_errors),
            no_restart,
        ),
        Client(
            "sample_chromium", "OpenAI's sample code, Chromium", page(Trial("sample")), no_restart
        ),
        Client(
            "sample_firefox",
            "OpenAI's sample code, Firefox",
            page(Trial("sample", browser="firefox")),
            no_restart,
        ),
        Client(
            "pipecat",
            f"{version('@pipecat-ai/client-js')}, its small-webrtc-transport, Chromium",
            page(Trial("pipecat", restarts=True, channel=False), events=rtvi.fault),
        ),
        Client(
            "whip_whep",
            f"{version('whip-whep')}, Chromium",
            page(
                Trial("whip_whep", restarts=True, channel=False, ends=("hangup", "closed_by_peer"))
            ),
            {"events": NO_CHANNEL},
        ),
        Client(
            "eyevinn",
            f"{version('@eyevinn/whip-web-client')}, Chromium",
            page(
                Trial("eyevinn", interrupts=(), channel=False, down=False, ends=("hangup",)),
            ),
            {"events": NO_CHANNEL, "barge_in": ONE_WAY, **no_restart},
        ),
        Client(
            "aiortc",
            "aiortc 1.16.0, `RTCPeerConnection`",
            talk(options={"client": "aiortc", "events": True}),
            no_restart,
        ),
        Client(
            "aiortc_json",
            "aiortc 1.16.0, as in its examples (`/offer`)",
            talk(options={"client": "aiortc", "events": False}, channel=False),
            {"events": "n/a: its examples' channel knows no events", **no_restart},
        ),
        Client(
            "webrtcbin",
            "GStreamer 1.22 `webrtcbin`",
            talk(options={"client": "webrtcbin"}, ends=("hangup",)),
            no_restart,
        ),
        Client(
            "openai_python",
            f"`openai` {metadata.version('openai')} (Python), calls and sideband",
            talk(options={"client": "sdk", "sdk": "python", **SDK}, **SIDEBAND),
            no_restart,
        ),
        Client(
            "openai_npm",
            f"{version('openai')} (npm), calls and sideband, Node",
            talk(options={"client": "sdk", "sdk": "npm", **SDK}, **SIDEBAND),
            no_restart,
        ),
        Client(
            "page",
            "Our page, Chromium",
            page(Trial("", restarts=True, ends=("hangup",), api_key=True)),
        ),
        *_not_tried(),
    ]


def _not_tried() -> list[Client]:
    """Clients that people ask for, and why they cannot be run here."""

    def nothing() -> Any:
        raise AssertionError("every cell has its reason")

    return [
        Client(name, title, nothing, dict.fromkeys(COLUMNS, f"n/a: {why}"))
        for name, title, why in (
            ("tanstack", "`@tanstack/ai-openai` 0.23.1", "OpenAI's URL is fixed in its code"),
            ("obs", "OBS 30, WHIP", "needs a desktop; its offer is in `tests/vectors/sdp`"),
            (
                "embedded",
                "openai-realtime-embedded-sdk (ESP32)",
                "needs the device; its offer is in `tests/vectors/sdp`",
            ),
        )
    ]


def _agents(report: Mapping[str, Any], seen: Seen) -> str | None:
    """The SDK ran its tool, got the answer across, and complains of nothing."""
    own = report["own"]
    if own["errors"]:
        return f"the SDK reports {own['errors'][0]}"
    if not own["tool_calls"] or own["tool_ends"][:1] != [["weather", "sunny in Zürich"]]:
        return f"tools: {own['tool_calls']} {own['tool_ends']}"
    if own["connect_ms"] > 4500:
        return "no session.updated came while it connected"
    read = sum(own["types"].values())
    if read != len(seen.messages):
        return f"the SDK read {read} of {len(seen.messages)} events"
    return None


def _no_errors(report: Mapping[str, Any], seen: Seen) -> str | None:
    errors: Sequence[str] = report["own"]["errors"]
    return f"the client reports {errors[0]}" if errors else None
