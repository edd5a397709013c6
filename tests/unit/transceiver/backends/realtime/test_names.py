import pytest

from transceiver.backends.realtime.names import down, up
from transceiver.events import Event

BETA_ITEM: Event = {"id": "i", "type": "message", "role": "assistant", "status": "completed"}
BETA_ITEM["content"] = [{"type": "audio", "transcript": "a"}, {"type": "text", "text": "b"}]
ITEM = {**BETA_ITEM, "content": [{"type": "output_audio", "transcript": "a"}]}
ITEM["content"] = [*ITEM["content"], {"type": "output_text", "text": "b"}]


@pytest.mark.parametrize(
    ("beta", "ours"),
    [
        ("response.audio.delta", "response.output_audio.delta"),
        ("response.audio.done", "response.output_audio.done"),
        ("response.audio_transcript.delta", "response.output_audio_transcript.delta"),
        ("response.text.done", "response.output_text.done"),
        ("rate_limits.updated", "rate_limits.updated"),
        ("something.new", "something.new"),
    ],
)
def test_names_of_what_the_server_says(beta: str, ours: str) -> None:
    fields = {"event_id": "e", "delta": "d", "n": 1e-7}
    assert down({"type": beta, **fields}) == [{"type": ours, **fields}]


def test_a_session_as_we_show_it() -> None:
    session = {"modalities": ["audio", "text"], "voice": "ash", "input_audio_format": "pcm16"}
    (event,) = down({"type": "session.created", "session": {**session, "turn_detection": None}})
    assert event["session"] == {
        "type": "realtime",
        "output_modalities": ["audio"],
        "audio": {
            "input": {"format": {"type": "audio/pcm", "rate": 24000}, "turn_detection": None},
            "output": {"voice": "ash"},
        },
    }


def test_an_item_that_is_whole_is_done_at_once() -> None:
    created = {"type": "conversation.item.created", "previous_item_id": "p", "item": BETA_ITEM}
    added, done = down(created)
    assert (added["type"], added["item"]) == ("conversation.item.added", ITEM)
    assert done == {"type": "conversation.item.done", "previous_item_id": "p", "item": ITEM}


def test_an_item_that_is_being_made_is_done_with_its_output() -> None:
    item = {**BETA_ITEM, "status": "in_progress"}
    assert len(down({"type": "conversation.item.created", "item": item})) == 1
    first, second = down({"type": "response.output_item.done", "item": BETA_ITEM})
    assert first["type"] == "response.output_item.done"
    assert (second["type"], second["item"]) == ("conversation.item.done", ITEM)


def test_a_responses_output() -> None:
    response = {"id": "r", "modalities": ["text"], "output": [BETA_ITEM], "max_output_tokens": 5}
    (event,) = down({"type": "response.done", "response": response})
    expected = {"id": "r", "output_modalities": ["text"], "output": [ITEM], "max_output_tokens": 5}
    assert event["response"] == expected


def test_what_goes_up() -> None:
    session = {"type": "realtime", "audio": {"output": {"voice": "ash"}}, "tools": []}
    assert up({"type": "session.update", "session": session})["session"] == {
        "voice": "ash",
        "tools": [],
    }
    response = {"output_modalities": ["audio"], "max_output_tokens": 5}
    assert up({"type": "response.create", "response": response})["response"] == {
        "modalities": ["text", "audio"],
        "max_response_output_tokens": 5,
    }
    item = up({"type": "conversation.item.create", "item": ITEM})["item"]
    assert item == BETA_ITEM
    assert up({"type": 5}) == {"type": 5}


@pytest.mark.parametrize("odd", [None, 5, [], {"content": 5}, {"output": [None]}, {"status": []}])
def test_what_is_odd_passes(odd: object) -> None:
    for kind in ("conversation.item.created", "response.done", "session.created"):
        event = {"type": kind, "item": odd, "response": odd, "session": odd}
        assert down(event)
        assert up(event)


def test_an_odd_format_passes_too() -> None:
    response: Event = {"audio": {"output": {"format": {"type": []}}}}
    assert up({"type": "response.create", "response": response})
