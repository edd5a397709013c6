import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.unit.transceiver.backends.around import Peer
from transceiver.backends import choice
from transceiver.backends.choice import Backends
from transceiver.backends.echo import Echo
from transceiver.backends.parrot import Parrot
from transceiver.backends.realtime.backend import Realtime
from transceiver.backends.realtime.target import Target
from transceiver.config import TransceiverConfig
from transceiver.turns.settings import Limits, Sensitivity


def config(**settings: Any) -> TransceiverConfig:
    return TransceiverConfig(
        listen=("127.0.0.1", 5000),
        inner="plain",
        cluster=7,
        keys_file=Path("/keys"),
        mint=1,
        **settings,
    )


def made(key: str | None = None, **settings: Any) -> tuple[Any, Any]:
    """A backend, and another one; both closed."""

    async def make() -> tuple[Any, Any]:
        backends = Backends(config(**settings), key, lambda: 10.0)
        both = backends.make(Peer()), backends.make(Peer())
        await asyncio.sleep(0)
        for backend in both:
            backend.close()
        backends.close()
        return both

    return asyncio.run(make())


def test_echo_by_default() -> None:
    one, other = made(echo={"mode": "paced"}, session={"length_s": 90, "warning_s": 5})
    assert type(one) is Echo
    assert one is not other
    assert (one._keeper._terms.length_s, one._keeper._terms.warning_s) == (90, 5)


def spied(monkeypatch: pytest.MonkeyPatch, kind: type) -> list[dict[str, Any]]:
    """What objects of this class are made with."""
    given: list[dict[str, Any]] = []

    class Seen(kind):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            given.append(named)
            super().__init__(*arguments, **named)

    monkeypatch.setattr(choice, kind.__name__, Seen)
    return given


def test_parrots_have_detectors_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    given = spied(monkeypatch, Parrot)
    one, other = made(
        backend="parrot",
        parrot={"vad": "webrtc", "think_ms": 250, "interruption_ms": 200},
        session={"client_buffer_ms": 120, "echo_guard": False},
    )
    assert isinstance(one, Parrot)
    assert one._vad is not other._vad
    assert type(one._vad).__name__ == "WebRtc"
    assert one._detector._limits.playing.min_speech_ms == 200
    assert given[0] == {
        "think_s": 0.25,
        "client_buffer_s": 0.12,
        "echo_guard": False,
        "recogniser": None,
        "limits": Limits(playing=Sensitivity(min_speech_ms=200)),
    }


def test_realtime_is_told_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    given = spied(monkeypatch, Realtime)
    section = {
        "url": "ws://127.0.0.1:9/v1/realtime",
        "model": "m",
        "headers": {"x-team": "blue"},
        "dialect": "beta",
        "connect_s": 2,
    }
    one, _ = made("sk", backend="realtime", realtime=section, session={"client_buffer_ms": 20})
    assert isinstance(one, Realtime)
    assert given[0]["target"] == Target(
        "ws://127.0.0.1:9/v1/realtime", "m", "sk", {"x-team": "blue"}, "beta", 2.0
    )
    assert given[0]["tls"] is None
    assert given[0]["client_buffer_s"] == 0.02
    assert "sk" not in repr(given[0]["target"])


def test_tls_is_made_once() -> None:
    section = {"url": "wss://127.0.0.1:9/v1/realtime"}
    one, other = made(backend="realtime", realtime=section)
    assert one._upstream._tls is other._upstream._tls is not None
