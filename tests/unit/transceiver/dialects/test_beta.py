import json
from typing import Any

import pytest
from openai.types.beta.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from transceiver.dialects.beta import EVENTS, Beta, from_beta, to_beta

BETA = TypeAdapter[Any](RealtimeServerEvent)
PCM = {"type": "audio/pcm", "rate": 24000}
OURS = {
    "type": "realtime",
    "object": "realtime.session",
    "id": "sess_1",
    "model": "gpt-4o-realtime-preview",
    "output_modalities": ["audio"],
    "instructions": "be brief",
    "audio": {
        "input": {
            "format": PCM,
            "turn_detection": {"type": "server_vad"},
            "transcription": None,
            "noise_reduction": {"type": "near_field"},
        },
        "output": {"format": {"type": "audio/pcmu"}, "voice": "sage", "speed": 1.0},
    },
    "max_output_tokens": 100,
    "tools": [],
}
THEIRS = {
    "object": "realtime.session",
    "id": "sess_1",
    "model": "gpt-4o-realtime-preview",
    "modalities": ["text", "audio"],
    "instructions": "be brief",
    "input_audio_format": "pcm16",
    "output_audio_format": "g711_ulaw",
    "turn_detection": {"type": "server_vad"},
    "input_audio_transcription": None,
    "input_audio_noise_reduction": {"type": "near_field"},
    "voice": "sage",
    "speed": 1.0,
    "max_response_output_tokens": 100,
    "tools": [],
}


def test_a_session_has_other_fields_both_ways() -> None:
    told = to_beta({"type": "session.created", "event_id": "e", "session": OURS})
    assert told["session"] == THEIRS
    BETA.validate_python(told, strict=True)
    assert from_beta({"type": "session.update", "session": THEIRS})["session"] == OURS


def test_only_what_an_update_names_is_changed() -> None:
    update = {"turn_detection": None, "modalities": ["text"], "voice": "ash"}
    assert from_beta({"type": "session.update", "event_id": "x", "session": update}) == {
        "type": "session.update",
        "event_id": "x",
        "session": {
            "type": "realtime",
            "output_modalities": ["text"],
            "audio": {"input": {"turn_detection": None}, "output": {"voice": "ash"}},
        },
    }


def test_an_update_in_new_names_is_left_as_it_is() -> None:
    session = {"type": "realtime", "audio": {"output": {"voice": "ash"}}}
    mixed = {**session, "turn_detection": None}
    assert from_beta({"type": "session.update", "session": session})["session"] == session
    assert from_beta({"type": "session.update", "session": mixed})["session"] == {
        "type": "realtime",
        "audio": {"output": {"voice": "ash"}, "input": {"turn_detection": None}},
    }


ITEM = {
    "id": "item_1",
    "object": "realtime.item",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [
        {"type": "output_audio", "transcript": "hi"},
        {"type": "output_text", "text": "ho"},
    ],
}
SPOKEN = {"response_id": "r", "item_id": "i", "output_index": 0, "content_index": 0}


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "conversation.item.added", "item": ITEM}, "conversation.item.created"),
        ({"type": "conversation.item.retrieved", "item": ITEM}, "conversation.item.retrieved"),
        ({"type": "response.output_text.delta", **SPOKEN, "delta": "x"}, "response.text.delta"),
        ({"type": "response.output_audio.done", **SPOKEN}, "response.audio.done"),
        (
            {"type": "response.output_audio_transcript.done", **SPOKEN, "transcript": "x"},
            "response.audio_transcript.done",
        ),
        ({"type": "output_audio_buffer.started", "response_id": "r"}, None),
    ],
)
def test_events_have_other_names(event: dict[str, Any], kind: str | None) -> None:
    event = {**event, "event_id": "e"}
    told = to_beta(event)
    assert told["type"] == (kind or event["type"])
    if kind != "conversation.item.retrieved" and kind is not None:
        BETA.validate_python({**told, "previous_item_id": "p"}, strict=True)
    if "item" in event:
        assert [part["type"] for part in told["item"]["content"]] == ["audio", "text"]
        assert from_beta({"type": "conversation.item.create", "item": told["item"]})["item"] == ITEM


def test_responses_and_requests() -> None:
    response = {
        "id": "r",
        "object": "realtime.response",
        "status": "completed",
        "output": [ITEM],
        "output_modalities": ["audio"],
        "audio": {"output": {"format": PCM, "voice": "sage"}},
        "max_output_tokens": "inf",
    }
    told = to_beta({"type": "response.done", "event_id": "e", "response": response})
    BETA.validate_python(told, strict=True)
    assert told["response"]["modalities"] == ["text", "audio"]
    assert told["response"]["voice"] == "sage"
    assert told["response"]["max_output_tokens"] == "inf"
    asked = {"modalities": ["text"], "max_response_output_tokens": 5, "instructions": "sing"}
    assert from_beta({"type": "response.create", "response": asked})["response"] == {
        "output_modalities": ["text"],
        "max_output_tokens": 5,
        "instructions": "sing",
    }


def test_every_name_of_the_table_is_one_of_the_beta_api() -> None:
    schema = json.dumps(BETA.json_schema())
    kinds = {kind for kind in EVENTS.values() if f'"const": "{kind}"' in schema}
    assert set(EVENTS.values()) == kinds


@pytest.mark.parametrize(
    "event",
    [
        {"type": "session.update", "session": 5},
        {"type": "session.update"},
        {"type": "response.create", "response": {"input": [5, {"content": [5, {"type": []}]}]}},
        {"type": "conversation.item.create", "item": {"content": "x"}},
        {"no": "type"},
    ],
)
def test_nonsense_is_the_backends_to_refuse(event: dict[str, Any]) -> None:
    assert from_beta(event) == event


def test_odd_values_stay() -> None:
    session = {"modalities": 5, "input_audio_format": ["x"], "output_audio_format": "ogg"}
    assert from_beta({"type": "session.update", "session": session})["session"] == {
        "type": "realtime",
        "output_modalities": 5,
        "audio": {"input": {"format": ["x"]}, "output": {"format": "ogg"}},
    }


def test_the_dialect() -> None:
    beta = Beta(lambda kind: f"{kind}_1")
    assert beta.listens
    assert beta.said({"type": "conversation.item.done", "item": ITEM}) == []
    (message,) = beta.said({"type": "response.output_text.done", "text": "x"})
    assert json.loads(message)["type"] == "response.text.done"
    events, answers = beta.received('{"type": "session.update", "session": {"voice": "ash"}}')
    assert events[0]["session"]["audio"] == {"output": {"voice": "ash"}}
    assert answers == []
    assert len(beta.received("{")[1]) == 1
