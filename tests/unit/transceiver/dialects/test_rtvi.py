import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transceiver.dialects.base import HANG_UP
from transceiver.dialects.rtvi import Rtvi

NOW = "2030-01-02T03:04:05.678+00:00"


def dialect() -> Rtvi:
    numbers = itertools.count()
    return Rtvi(lambda kind: f"{kind}_{next(numbers)}", lambda: NOW)


def said(rtvi: Rtvi, kind: str, **fields: Any) -> list[tuple[str, Any]]:
    messages = [json.loads(message) for message in rtvi.said({"type": kind, **fields})]
    assert all(message["label"] == "rtvi-ai" and message["id"] for message in messages)
    return [(message["type"], message.get("data")) for message in messages]


def heard(rtvi: Rtvi, kind: str, data: Any = None, of: str = "m1") -> tuple[list[Any], list[Any]]:
    message = {"label": "rtvi-ai", "type": kind, "id": of, "data": data}
    events, answers = rtvi.received(json.dumps(message))
    return events, [json.loads(answer) for answer in answers]


def output(text: str, *, spoken: bool, status: str, segment: int = 1) -> dict[str, Any]:
    return {
        "text": text,
        "output_type": "sentence",
        "aggregated_by": "sentence",
        "segment_id": segment,
        "will_be_spoken": spoken,
        "spoken_status": status,
    }


def test_a_client_that_is_ready_hears_that_the_bot_is() -> None:
    events, (ready,) = heard(dialect(), "client-ready", {"version": "2.1.0", "about": {}})
    assert events == []
    assert (ready["label"], ready["type"], ready["id"]) == ("rtvi-ai", "bot-ready", "m1")
    assert ready["data"]["version"].startswith("2.")


def test_pings_and_what_is_about_video_are_passed_over() -> None:
    for message in ("ping: 1700000000000", '{"type": "signalling", "message": {}}', '{"x": 1}'):
        assert dialect().received(message) == ([], [])


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("output_audio_buffer.started", {}, [("bot-started-speaking", None)]),
        ("output_audio_buffer.stopped", {}, [("bot-stopped-speaking", None)]),
        (
            "output_audio_buffer.cleared",
            {},
            [("bot-interrupted", None), ("bot-stopped-speaking", None)],
        ),
        ("input_audio_buffer.speech_started", {}, [("user-started-speaking", None)]),
        ("input_audio_buffer.speech_stopped", {}, [("user-stopped-speaking", None)]),
        ("response.created", {}, [("bot-llm-started", None)]),
        ("response.done", {}, [("bot-llm-stopped", None)]),
        ("response.output_text.delta", {"delta": "h"}, [("bot-llm-text", {"text": "h"})]),
        (
            "response.output_audio_transcript.done",
            {"transcript": "hi"},
            [
                ("bot-transcription", {"text": "hi"}),
                ("bot-output", output("hi", spoken=True, status="new")),
            ],
        ),
        (
            "response.output_text.done",
            {"text": "hi"},
            [("bot-output", output("hi", spoken=False, status="new"))],
        ),
        (
            "conversation.item.input_audio_transcription.completed",
            {"transcript": "yes"},
            [
                (
                    "user-transcription",
                    {"text": "yes", "final": True, "timestamp": NOW, "user_id": ""},
                )
            ],
        ),
        (
            "response.function_call_arguments.done",
            {"name": "f", "call_id": "c", "arguments": '{"x": 1}'},
            [
                (
                    "llm-function-call-in-progress",
                    {"function_name": "f", "tool_call_id": "c", "arguments": {"x": 1}},
                )
            ],
        ),
        ("session.created", {"session": {}}, []),
        ("conversation.item.added", {"item": {}}, []),
    ],
)
def test_what_the_backend_says(
    kind: str, fields: dict[str, Any], expected: list[tuple[str, Any]]
) -> None:
    assert said(dialect(), kind, **fields) == expected


def test_what_was_heard_whole_is_told_and_what_was_cut_is_not() -> None:
    rtvi = dialect()
    for text in ("one", "two"):
        said(rtvi, "response.output_audio_transcript.done", transcript=text)
    assert said(rtvi, "output_audio_buffer.stopped") == [
        ("bot-output", output("one", spoken=True, status="completed")),
        ("bot-output", output("two", spoken=True, status="completed", segment=2)),
        ("bot-stopped-speaking", None),
    ]
    said(rtvi, "response.output_audio_transcript.done", transcript="three")
    cut = said(rtvi, "output_audio_buffer.cleared")
    assert [kind for kind, _ in cut] == ["bot-interrupted", "bot-stopped-speaking"]
    assert said(rtvi, "output_audio_buffer.stopped") == [("bot-stopped-speaking", None)]


def test_errors_go_to_the_message_that_caused_them() -> None:
    rtvi = dialect()
    (plain,) = said(rtvi, "error", error={"message": "no", "event_id": None})
    assert plain == ("error", {"error": "no", "fatal": False})
    (message,) = rtvi.said({"type": "error", "error": {"message": "no", "event_id": "m1"}})
    answer = json.loads(message)
    assert (answer["type"], answer["id"]) == ("error-response", "m1")
    assert answer["data"] == {"error": "no"}


def item(text: str) -> dict[str, Any]:
    part = {"type": "input_text", "text": text}
    return {"type": "message", "role": "user", "content": [part]}


def test_written_text_is_an_item_and_wants_an_answer() -> None:
    events, answers = heard(dialect(), "send-text", {"content": "hi", "options": {}})
    assert answers == []
    assert events == [
        {"type": "conversation.item.create", "event_id": "m1", "item": item("hi")},
        {"type": "response.create", "event_id": "m1"},
    ]
    quiet = {"run_immediately": True, "audio_response": False}
    events, _ = heard(dialect(), "send-text", {"content": "hi", "options": quiet})
    assert events[-1]["response"] == {"output_modalities": ["text"]}
    later = {"run_immediately": False}
    events, _ = heard(dialect(), "send-text", {"content": "hi", "options": later}, of="")
    assert events == [{"type": "conversation.item.create", "item": item("hi")}]


def test_written_text_silences_what_is_being_said() -> None:
    rtvi = dialect()
    rtvi.said({"type": "response.created"})
    rtvi.said({"type": "output_audio_buffer.started"})
    events, _ = heard(rtvi, "send-text", {"content": "hi"})
    kinds = [event["type"] for event in events]
    asked = ["conversation.item.create", "response.create"]
    assert kinds == ["response.cancel", "output_audio_buffer.clear", *asked]
    rtvi.said({"type": "response.done"})
    rtvi.said({"type": "output_audio_buffer.cleared"})
    events, _ = heard(rtvi, "send-text", {"content": "hi"})
    assert [event["type"] for event in events] == asked


@pytest.mark.parametrize(("result", "output"), [({"x": 1}, '{"x": 1}'), ("done", "done")])
def test_results_of_functions_go_to_the_model(result: Any, output: str) -> None:
    events, _ = heard(
        dialect(), "llm-function-call-result", {"tool_call_id": "c", "result": result}
    )
    create, respond = events
    assert create["item"] == {"type": "function_call_output", "call_id": "c", "output": output}
    assert respond["type"] == "response.create"


def test_the_client_hangs_up() -> None:
    events, _ = heard(dialect(), "disconnect-bot")
    assert events[0] is HANG_UP


@pytest.mark.parametrize("kind", ["client-message", "send-text", None, ["x"]])
def test_what_cannot_be_done_is_told(kind: Any) -> None:
    events, (answer,) = heard(dialect(), kind, {"content": 5})
    assert events == []
    assert (answer["type"], answer["id"]) == ("error-response", "m1")


def test_too_large_and_no_json() -> None:
    for messages in (
        dialect().too_large(),
        dialect().undelivered(),
        dialect().received("{")[1],
    ):
        (message,) = messages
        assert json.loads(message)["type"] == "error"


@given(st.text() | st.binary())
def test_takes_anything(message: str | bytes) -> None:
    events, answers = dialect().received(message)
    assert len(events) + len(answers) <= 1
