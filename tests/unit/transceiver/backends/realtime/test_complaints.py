import asyncio
import json
from typing import Any

import pytest

from tests.realtime_server.script import Script
from tests.unit.transceiver.backends.realtime.scene import scene
from transceiver.backends.realtime.complaints import MAX_TOLD, Complaints


def error(**fields: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"message": "hunter2", **fields}}


def test_an_error_is_told_once_by_type_and_code() -> None:
    complaints = Complaints()
    missing = error(type="invalid_request_error", code="model_not_found")
    line = "server error: type invalid_request_error, code model_not_found"
    assert complaints.about(missing) == line
    assert complaints.about(missing) is None
    assert complaints.about(error(code=5)) == "server error: type none, code none"
    assert complaints.about({"type": "error", "error": None}) is None


def test_what_a_server_makes_up_is_escaped_and_bounded() -> None:
    complaints = Complaints()
    line = complaints.about(error(type="a\n\x1b[31m\u202e", code="\n" * 100))
    assert line is not None
    assert line.isascii()
    assert line.isprintable()
    assert line.split("code ")[1] == "\\n" * 32
    told = [complaints.about(error(code=str(n))) for n in range(2 * MAX_TOLD)]
    assert sum(each is not None for each in told) == MAX_TOLD - 1


@pytest.mark.parametrize(
    "event",
    [
        {"type": "session.created", "session": {"modalities": ["text", "audio"]}},
        {"type": "response.audio.delta", "delta": "AAAA"},
    ],
)
def test_a_server_of_the_beta_api_is_recognised(event: dict[str, Any]) -> None:
    complaints = Complaints()
    assert "set realtime.dialect = 'beta'" in str(complaints.about(event))
    assert complaints.about({"type": "response.audio.delta", "delta": "AAAA"}) is None


@pytest.mark.parametrize("dialect", ["ga", "beta"])
def test_the_log_has_them(
    dialect: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of the beta API that has an error, read in either dialect."""
    monkeypatch.setattr("tests.unit.transceiver.backends.realtime.scene.check", lambda event: None)
    stray = json.dumps(
        {**error(type="invalid_request_error", code="model_not_found"), "event_id": "e"}
    )

    async def played() -> None:
        async with scene(Script(dialect="beta", stray=(stray, stray)), dialect=dialect) as one:
            await one.client.until("session.created")
            await one.heard(lambda: "model_not_found" in caplog.text)

    asyncio.run(played())
    assert caplog.text.count("model_not_found") == 1
    assert caplog.text.count("set realtime.dialect = 'beta'") == (dialect == "ga")
    assert "hunter2" not in caplog.text
