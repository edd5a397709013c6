from typing import Any

import pytest

from transceiver.turns.settings import Settings


def test_the_defaults_are_those_of_server_vad() -> None:
    assert Settings.of({"type": "server_vad"}) == Settings.of({}) == Settings()


def test_null_means_the_client_says_when_turns_end() -> None:
    assert Settings.of(None) is None


def test_reads_every_field_of_server_vad() -> None:
    asked = {
        "type": "server_vad",
        "threshold": 0.7,
        "prefix_padding_ms": 450,
        "silence_duration_ms": 200.0,
        "create_response": False,
        "interrupt_response": False,
        "idle_timeout_ms": 6000,
        "of_the_future": "left alone",
    }
    assert Settings.of(asked) == Settings(0.7, 200, 450, False, False)


@pytest.mark.parametrize(
    ("eagerness", "silence_ms"),
    [("low", 1200), ("medium", 800), ("auto", 800), ("high", 500), (None, 800)],
)
def test_semantic_vad_is_a_silence_by_eagerness(eagerness: str | None, silence_ms: int) -> None:
    asked = {"type": "semantic_vad", "eagerness": eagerness, "interrupt_response": False}
    assert Settings.of(asked) == Settings(silence_ms=silence_ms, interrupt_response=False)


def test_semantic_vad_has_no_fields_of_server_vad() -> None:
    asked = {"type": "semantic_vad", "threshold": "high", "silence_duration_ms": 1}
    assert Settings.of(asked) == Settings(silence_ms=800)


def test_a_prefix_never_cuts_a_short_word() -> None:
    short = Settings.of({"prefix_padding_ms": 0})
    assert short is not None
    assert short.prefix_ms == 300


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", "clairvoyance"),
        ("threshold", 1.5),
        ("threshold", True),
        ("threshold", float("nan")),
        ("silence_duration_ms", 0),
        ("silence_duration_ms", 10_001),
        ("silence_duration_ms", 0.5),
        ("silence_duration_ms", "500"),
        ("prefix_padding_ms", -1),
        ("prefix_padding_ms", float("inf")),
        ("prefix_padding_ms", 10**400),
        ("create_response", 1),
        ("interrupt_response", "yes"),
    ],
)
def test_refuses_with_field_value_and_mend(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"turn_detection\.{field} .*: give ") as caught:
        Settings.of({field: value})
    assert str(value)[:40] in str(caught.value)


@pytest.mark.parametrize("eagerness", ["eager", 3, ["low"]])
def test_refuses_an_unknown_eagerness(eagerness: Any) -> None:
    with pytest.raises(ValueError, match="low, medium, auto, high"):
        Settings.of({"type": "semantic_vad", "eagerness": eagerness})
