"""A conversation through the whole service: a turn, its answer, and an interrupted one.

With the parrot, whose answer is what was said; and with a Realtime server behind the transceiver.
"""

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conversations.mouth import phrase
from tests.lab import ear, speech
from tests.lab.conftest import PREFIX
from tests.lab.deployment import Deployment, Place, deploy, unavailable
from tests.lab.talker import TURN_S

FRAME = speech.RATE // 50
SERVER = "127.0.0.1"
SERVER_PORT = 24490
SCRIPT = {"reply_s": 3.0, "sound": "speech", "pace": 4.0}
LOUD = 0.01  # RMS of 20 ms
LATE = 25  # packets that a busy client may read before the event that was sent with the first one

TURN = (
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "response.created",
    "response.output_item.added",
    "response.content_part.added",
    "output_audio_buffer.started",
)


@dataclass
class Heard:
    """What the client was told, in order, and heard."""

    deployment: Deployment
    call_id: str
    events: list[dict[str, Any]]
    samples: speech.Samples

    @property
    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]

    def nth(self, kind: str, number: int = 0) -> dict[str, Any]:
        return [event for event in self.events if event["type"] == kind][number]

    def between(self, first: int, last: int) -> speech.Samples:
        """The sound of some packets."""
        return self.samples[first * FRAME : last * FRAME]

    def loud(self, first: int, last: int) -> int:
        """How many of these packets have sound."""
        frames = self.between(first, last)
        frames = frames[: len(frames) // FRAME * FRAME].reshape(-1, FRAME)
        return int((np.sqrt(np.mean(frames**2, axis=1)) > LOUD).sum())


@contextlib.contextmanager
def conversation(place: Place, prefix: str, backend: str, directory: Path) -> Iterator[Heard]:
    url = f"ws://{SERVER}:{SERVER_PORT}/v1/realtime"
    parrot = backend == "parrot"
    with contextlib.ExitStack() as stack:
        deployment = stack.enter_context(
            deploy(place, prefix, backend="parrot")
            if parrot
            else deploy(place, prefix, backend="realtime", model={"url": url, "model": "m"})
        )
        site = deployment.site
        if not parrot:
            options = ["--host", SERVER, "--port", str(SERVER_PORT), "--script", json.dumps(SCRIPT)]
            site.transceiver.python("realtime-server", "tests.realtime_server", *options)
        wav = directory / "heard.wav"
        command = [sys.executable, "-m", "tests.lab.talker", "--url", site.calls_url]
        options = ["--host", site.client_host, "--record", str(wav)]
        done = site.client.run([*command, *options], timeout_s=120, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        report = json.loads(done.stdout)
        samples, rate = speech.read_wav(wav)
        assert rate == speech.RATE
        yield Heard(deployment, report["id"], report["events"], samples[0])


@pytest.fixture(
    scope="module", params=[("xdp", "parrot"), ("loopback", "parrot"), ("xdp", "realtime")]
)
def heard(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Heard]:
    place, backend = request.param
    if reason := unavailable(place):
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("conversation")
    with conversation(place, f"{PREFIX}c-", backend, directory) as found:
        yield found


def test_the_session_is_the_one_that_was_asked_for(heard: Heard) -> None:
    assert heard.kinds[0] == "session.created"
    session = heard.events[0]["session"]
    assert session["instructions"] == "be brief"
    assert session["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 400
    shown = heard.deployment.services.call(heard.call_id).json()
    assert shown["backend"] == heard.deployment.services.setup.backend
    assert shown["session"] == session["id"]
    assert len({event["event_id"] for event in heard.events}) == len(heard.events)


def test_a_turn_is_answered_in_order(heard: Heard) -> None:
    kinds = heard.kinds
    places = [kinds.index(kind) for kind in TURN]
    assert places == sorted(places), kinds
    response = heard.nth("response.created")["response"]["id"]
    assert heard.nth("output_audio_buffer.started")["response_id"] == response
    assert heard.nth("response.done")["response"]["status"] == "completed"
    done, stopped = heard.nth("response.done"), heard.nth("output_audio_buffer.stopped")
    assert heard.events.index(done) < heard.events.index(stopped)
    assert "error" not in kinds


def test_the_answer_is_heard_and_nothing_before_it(heard: Heard) -> None:
    started = heard.nth("output_audio_buffer.started")["at"]
    stopped = heard.nth("output_audio_buffer.stopped")["at"]
    assert heard.loud(0, started - LATE) == 0
    assert heard.loud(started, stopped) > TURN_S * 50 / 2
    if heard.deployment.services.setup.backend == "parrot":
        said = phrase(0, TURN_S)
        same = ear.correlate(said, heard.between(started - LATE, stopped + LATE), speech.RATE)
        assert same.windows >= 1
        assert same.median > 0.7


def test_who_is_interrupted_falls_silent(heard: Heard) -> None:
    cut = heard.nth("output_audio_buffer.cleared")
    following = [
        event["at"]
        for event in heard.events[heard.events.index(cut) :]
        if event["type"] == "output_audio_buffer.started"
    ]
    assert heard.loud(cut["at"] - 50, cut["at"]) > 10
    assert following
    assert heard.loud(cut["at"] + 5, following[0] - LATE) == 0


def test_the_conversation_holds_what_was_heard_of_it(heard: Heard) -> None:
    cut = heard.nth("output_audio_buffer.cleared")
    before = heard.events[: heard.events.index(cut)]
    started = [event for event in before if event["type"] == "output_audio_buffer.started"][-1]
    truncated = heard.nth("conversation.item.truncated")
    played_ms = (cut["at"] - started["at"]) * 20
    assert 0 < truncated["audio_end_ms"] <= played_ms + LATE * 20
    interrupted = [
        event["response"]["status"]
        for event in heard.events
        if event["type"] == "response.done" and event["response"]["id"] == cut["response_id"]
    ]
    assert len(interrupted) == 1
