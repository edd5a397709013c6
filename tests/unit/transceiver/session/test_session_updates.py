"""What clients set, and the errors that tell them what is wrong."""

import pytest

from tests.unit.transceiver.session.owner import Owner, error, judge
from transceiver.session.commands import Detect

OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "{}"}


def test_every_update_is_answered(owner: Owner) -> None:
    for changes in (
        {"tracing": "auto"},
        {"tracing": None},
        {"audio": {"input": {"noise_reduction": None, "turn_detection": {"type": "semantic_vad"}}}},
        {},
    ):
        (updated,) = owner.update(**changes)
        assert updated["type"] == "session.updated"
    judge(owner)


def test_a_change_of_turn_detection_is_handed_on(owner: Owner) -> None:
    owner.detect({"type": "semantic_vad", "eagerness": "low"})
    owner.detect({"type": "semantic_vad", "eagerness": "low"})
    owner.detect(None)
    detects = [command for command in owner.commands if isinstance(command, Detect)]
    types = [each.turn_detection and each.turn_detection["type"] for each in detects]
    assert types == ["server_vad", "semantic_vad", None]
    assert owner.session.turn_detection is None


def test_what_the_maker_of_the_call_asked_for_holds_from_the_start() -> None:
    owner = Owner({"instructions": "hi", "audio": {"input": {"turn_detection": None}}})
    (created,) = owner.events
    assert created["session"]["instructions"] == "hi"
    assert owner.commands == [Detect(None)]


def test_a_wrong_wish_of_the_maker_of_the_call_is_told() -> None:
    owner = Owner({"instructions": 5})
    created, told = owner.events
    assert created["session"]["instructions"] == ""
    assert told["error"]["param"] == "session.instructions"
    judge(owner)


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({}, "unknown_event"),
        ({"type": 5}, "unknown_event"),
        ({"type": "nonsense"}, "unknown_event"),
        ({"type": "input_audio_buffer.append", "audio": "AAAA"}, "unsupported_over_webrtc"),
        ({"type": "session.update"}, "invalid_value"),
        ({"type": "session.update", "session": {"type": "transcription"}}, "invalid_value"),
        ({"type": "conversation.item.create"}, "invalid_value"),
        (
            {"type": "conversation.item.create", "item": OUTPUT, "previous_item_id": ["root"]},
            "invalid_value",
        ),
        (
            {"type": "conversation.item.create", "item": OUTPUT, "previous_item_id": "x"},
            "item_not_found",
        ),
        ({"type": "conversation.item.retrieve"}, "invalid_value"),
        ({"type": "conversation.item.retrieve", "item_id": "x"}, "item_not_found"),
        ({"type": "conversation.item.delete", "item_id": "x"}, "item_not_found"),
        ({"type": "conversation.item.truncate", "item_id": "x"}, "invalid_value"),
        ({"type": "response.create", "response": []}, "invalid_value"),
    ],
)
def test_an_error_names_the_event_that_caused_it(
    owner: Owner, event: dict[str, object], code: str
) -> None:
    told = error(owner.do(owner.session.event({"event_id": "mine", **event}, 100.0)))
    assert (told["code"], told["event_id"]) == (code, "mine")
    judge(owner)


def test_an_event_without_a_type_hears_that_it_has_none(owner: Owner) -> None:
    assert "the event has no type" in error(owner.do(owner.session.event({}, 100.0)))["message"]
