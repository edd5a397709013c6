from typing import Any

import pytest

from transceiver.session.fields import Refusal
from transceiver.session.settings import MAX_SESSION, Settings


@pytest.fixture
def initial() -> Settings:
    return Settings.initial("sess_1", "parrot", 1_800_000_000, detects=True)


def detection(asked: Any) -> dict[str, Any]:
    return {"audio": {"input": {"turn_detection": asked}}}


def test_a_session_begins_with_the_usual_settings(initial: Settings) -> None:
    assert initial.shown["type"] == "realtime"
    assert initial.shown["output_modalities"] == ["audio"]
    assert initial.shown["expires_at"] == 1_800_000_000
    assert initial.turn_detection is not None
    assert initial.turn_detection["type"] == "server_vad"
    assert (initial.creates_response, initial.interrupts, initial.transcribes) == (
        True,
        True,
        False,
    )
    assert initial.idle_timeout_s is None


def test_without_a_detector_turns_are_the_clients() -> None:
    settings = Settings.initial("sess_1", "echo", 0, detects=False)
    assert settings.turn_detection is None
    assert (settings.creates_response, settings.interrupts) == (False, False)


def test_an_update_merges_key_by_key(initial: Settings) -> None:
    changed = initial.updated({"audio": {"output": {"voice": "marin"}}, "tracing": "auto"})
    assert changed.shown["audio"]["output"]["voice"] == "marin"
    assert changed.shown["audio"]["output"]["speed"] == 1.0
    assert changed.shown["audio"]["input"] == initial.shown["audio"]["input"]
    assert initial.shown["tracing"] is None


def test_unknown_fields_are_kept(initial: Settings) -> None:
    changed = initial.updated({"flavour": {"a": 1}}).updated({"flavour": {"b": 2}})
    assert changed.shown["flavour"] == {"a": 1, "b": 2}


def test_read_only_fields_are_ignored(initial: Settings) -> None:
    changed = initial.updated({"id": "mine", "object": 5, "expires_at": 1, "model": "gpt-realtime"})
    assert changed == initial


def test_another_kind_of_detection_begins_with_its_own_defaults(initial: Settings) -> None:
    changed = initial.updated(detection({"type": "semantic_vad", "eagerness": "low"}))
    assert changed.turn_detection == {
        "type": "semantic_vad",
        "eagerness": "low",
        "create_response": True,
        "interrupt_response": True,
    }


def test_the_same_kind_keeps_what_was_set(initial: Settings) -> None:
    changed = initial.updated(detection({"type": "server_vad", "threshold": 0.7}))
    changed = changed.updated(detection({"silence_duration_ms": 300}))
    assert changed.turn_detection is not None
    assert changed.turn_detection["threshold"] == 0.7
    assert changed.turn_detection["silence_duration_ms"] == 300


def test_another_format_brings_its_own_fields(initial: Settings) -> None:
    changed = initial.updated({"audio": {"output": {"format": {"type": "audio/pcmu"}}}})
    assert changed.shown["audio"]["output"]["format"] == {"type": "audio/pcmu"}


def test_null_means_yes_where_the_client_may_say_no(initial: Settings) -> None:
    changed = initial.updated(detection({"create_response": None, "interrupt_response": False}))
    assert (changed.creates_response, changed.interrupts) == (True, False)


def test_idle_time_is_in_seconds(initial: Settings) -> None:
    assert initial.updated(detection({"idle_timeout_ms": 5000})).idle_timeout_s == 5.0


def test_transcription_can_be_asked_for_and_not(initial: Settings) -> None:
    asked = initial.updated({"audio": {"input": {"transcription": {"model": "whisper-1"}}}})
    assert asked.transcribes
    assert not asked.updated({"audio": {"input": {"transcription": None}}}).transcribes


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        (None, "session"),
        ([], "session"),
        ({"type": "transcription"}, "session.type"),
        ({"output_modalities": ["voice"]}, "session.output_modalities"),
        ({"output_modalities": []}, "session.output_modalities"),
        ({"output_modalities": "audio"}, "session.output_modalities"),
        ({"instructions": None}, "session.instructions"),
        ({"audio": None}, "session.audio"),
        ({"audio": {"input": 5}}, "session.audio.input"),
        ({"audio": {"input": {"format": "pcm16"}}}, "session.audio.input.format"),
        ({"audio": {"input": {"transcription": "yes"}}}, "session.audio.input.transcription"),
        ({"audio": {"output": {"voice": 5}}}, "session.audio.output.voice"),
        ({"audio": {"output": {"speed": 9}}}, "session.audio.output.speed"),
        ({"audio": {"output": {"speed": True}}}, "session.audio.output.speed"),
        ({"tools": {}}, "session.tools"),
        ({"tools": ["hammer"]}, "session.tools"),
        ({"max_output_tokens": 0}, "session.max_output_tokens"),
        ({"max_output_tokens": True}, "session.max_output_tokens"),
        ({"max_output_tokens": "many"}, "session.max_output_tokens"),
        ({"tracing": 1}, "session.tracing"),
        ({"include": {}}, "session.include"),
        ({"prompt": "hi"}, "session.prompt"),
        (detection("server_vad"), "session.audio.input.turn_detection"),
        (detection({"type": "client_vad"}), "session.audio.input.turn_detection.type"),
        (detection({"type": ["server_vad"]}), "session.audio.input.turn_detection.type"),
        (detection({"idle_timeout_ms": 9}), "session.audio.input.turn_detection.idle_timeout_ms"),
        (
            detection({"idle_timeout_ms": 10**400}),
            "session.audio.input.turn_detection.idle_timeout_ms",
        ),
        (detection({"threshold": 10**400}), "session.audio.input.turn_detection"),
        (detection({"threshold": 2}), "session.audio.input.turn_detection"),
        (
            detection({"type": "semantic_vad", "eagerness": "eager"}),
            "session.audio.input.turn_detection",
        ),
        ({"flavour": float("nan")}, "session"),
    ],
)
def test_a_wrong_field_is_named(initial: Settings, changes: object, param: str) -> None:
    with pytest.raises(Refusal) as refused:
        initial.updated(changes)
    assert (refused.value.code, refused.value.param) == ("invalid_value", param)
    assert param in refused.value.message


def test_a_type_has_to_be_said_after_null(initial: Settings) -> None:
    manual = initial.updated(detection(None))
    with pytest.raises(Refusal, match="'server_vad' or 'semantic_vad'"):
        manual.updated(detection({"threshold": 0.5}))


def test_a_session_has_a_size(initial: Settings) -> None:
    with pytest.raises(Refusal) as refused:
        initial.updated({"instructions": "x" * MAX_SESSION})
    assert refused.value.code == "session_too_large"


def test_what_is_nested_too_deep_is_refused(initial: Settings) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(Refusal, match="plain JSON"):
        initial.updated(deep)


@pytest.mark.parametrize("key", ["audio", "input", "output"])
def test_a_type_of_their_own_replaces_no_known_objects(initial: Settings, key: str) -> None:
    changes = {"type": "x"} if key == "audio" else {key: {"type": "x"}}
    other = {"type": "y"} if key == "audio" else {key: {"type": "y"}}
    changed = initial.updated({"audio": changes}).updated({"audio": other})
    assert changed.turn_detection == initial.turn_detection
