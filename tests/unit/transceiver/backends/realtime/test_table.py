import base64
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transceiver.backends.around import Peer, Wire
from transceiver.backends.realtime.table import Out, Table, Up
from transceiver.events import Event
from transceiver.playback import Playback

SECOND = bytes(48000)
OWN = {
    "type": "realtime",
    "id": "sess_up",
    "audio": {"input": {"turn_detection": {"type": "server_vad", "interrupt_response": True}}},
}
STARTED: Event = {"type": "input_audio_buffer.speech_started", "item_id": "u1", "event_id": "e"}


class Rig:
    """A table whose server is configured; what it gives goes into `up` and `down`."""

    def __init__(self, session: dict[str, Any] | None = None, ready: bool = True) -> None:
        self.wire = Wire()
        self.table = Table({}, None, Peer().new_id)
        self.wire.open(24000, self.frame)
        self.playback = Playback(self.wire, 24000, 0.0)
        self.table.begin(self.playback)
        self.up: list[Event] = []
        self.down: list[Event] = []
        if ready:
            self.configure(session or OWN)
            self.up.clear()
            self.down.clear()

    def configure(self, session: dict[str, Any]) -> None:
        self.server("session.created", session=session)
        self.server("session.updated", session=session)

    def frame(self, now: float) -> None:
        self.take(self.table.notices(self.playback.frame(now)))

    def take(self, outs: list[Out]) -> None:
        for out in outs:
            (self.up if isinstance(out, Up) else self.down).append(out.event)

    def server(self, kind: str, **fields: Any) -> None:
        self.take(self.table.server({"type": kind, "event_id": "up", **fields}, self.wire.now))

    def client(self, kind: str, **fields: Any) -> None:
        self.take(self.table.client({"type": kind, **fields}, self.wire.now))

    def reply(self, samples: bytes = SECOND, response: str = "r1", item: str = "i1") -> None:
        self.server("response.created", response={"id": response, "status": "in_progress"})
        self.delta(samples, response, item)
        self.down.clear()

    def delta(self, samples: bytes, response: str = "r1", item: str = "i1") -> None:
        audio = base64.b64encode(samples).decode()
        of = {"response_id": response, "item_id": item, "content_index": 0}
        self.server("response.output_audio.delta", **of, delta=audio)

    def done(self, status: str = "completed", response: str = "r1") -> None:
        self.server("response.done", response={"id": response, "status": status})

    def play(self, seconds: float) -> None:
        self.wire.run(self.wire.now + seconds)

    @property
    def told(self) -> list[str]:
        return [event["type"] for event in self.down]

    @property
    def asked(self) -> list[str]:
        return [event["type"] for event in self.up]


def test_the_session_is_introduced_once_with_what_the_server_made_of_it() -> None:
    rig = Rig(ready=False)
    rig.server("conversation.created", conversation={})
    rig.server("session.created", session=OWN)
    rig.server("conversation.created", conversation={})
    assert (rig.told, rig.asked) == ([], ["session.update"])
    assert not rig.table.ready
    rig.server("session.updated", session={**OWN, "voice": "ash"})
    assert rig.told == ["session.created", "conversation.created"]
    assert rig.down[0]["session"] == {**OWN, "voice": "ash"}
    rig.server("session.created", session=OWN)
    rig.server("session.updated", session=OWN)
    assert rig.told[2:] == ["session.updated"]


def test_an_error_before_the_session_is_nobody_elses() -> None:
    rig = Rig(ready=False)
    rig.server("error", error={"message": "Incorrect API key sk-hunter2", "event_id": None})
    assert (rig.up, rig.down) == ([], [])


def test_a_session_that_is_refused_is_the_servers_own_and_the_error_is_passed() -> None:
    rig = Rig(ready=False)
    rig.server("session.created", session=OWN)
    error = {"code": "invalid_value", "message": "no", "event_id": rig.up[0]["event_id"]}
    rig.server("error", error=error)
    assert rig.told == ["session.created", "error"]
    assert rig.down[0]["session"] == OWN
    assert rig.down[1]["error"] == {**error, "event_id": None}


def test_the_clients_update_goes_up_without_formats() -> None:
    rig = Rig()
    audio = {"input": {"format": {"type": "audio/pcmu"}, "x": 1}, "output": {"format": 5}, "y": 2}
    rig.client("session.update", event_id="m", session={"audio": audio, "odd": [None]})
    kept = {"input": {"x": 1}, "output": {}, "y": 2}
    expected = {"event_id": "m", "session": {"audio": kept, "odd": [None]}}
    assert rig.up == [{"type": "session.update", **expected}]


@pytest.mark.parametrize("session", [None, [], {"audio": None}, {"audio": {"input": None}}, 5])
def test_an_odd_update_is_the_servers_to_refuse(session: object) -> None:
    rig = Rig()
    rig.client("session.update", session=session)
    assert rig.up == [{"type": "session.update", "session": session}]


def test_sound_of_the_client_belongs_on_its_track() -> None:
    rig = Rig()
    rig.client("input_audio_buffer.append", event_id="m", audio="")
    (error,) = rig.down
    assert (error["error"]["code"], error["error"]["event_id"]) == ("unsupported_over_webrtc", "m")
    assert rig.up == []


def test_sound_is_played_and_what_follows_passed() -> None:
    rig = Rig()
    rig.reply()
    rig.server("response.output_audio.done", response_id="r1")
    assert rig.told == ["response.output_audio.done"]
    rig.done()
    rig.play(1.1)
    buffer = "output_audio_buffer."
    assert rig.told[1:] == ["response.done", f"{buffer}started", f"{buffer}stopped"]
    assert rig.down[2]["response_id"] == "r1"
    assert rig.wire.sent == 24000


def test_five_seconds_in_one_message_are_all_heard() -> None:
    rig = Rig()
    rig.reply(SECOND * 5)
    rig.done()
    rig.play(6)
    assert rig.wire.sent == 5 * 24000
    assert len([samples for _, samples in rig.wire.frames if samples]) >= 250


@pytest.mark.parametrize("delta", ["abc", 5, None, "é"])
def test_what_is_no_sound_is_counted(delta: object) -> None:
    rig = Rig()
    rig.server("response.output_audio.delta", response_id="r", item_id="i", delta=delta)
    assert (rig.table.undecodable, rig.down, rig.up) == (1, [], [])


@pytest.mark.parametrize("what", ["started", "stopped", "cleared"])
def test_the_servers_own_buffer_is_not_ours(what: str) -> None:
    rig = Rig()
    rig.server(f"output_audio_buffer.{what}", response_id="r")
    assert rig.down == []


def test_speech_silences_a_reply_and_tells_the_server_what_was_heard() -> None:
    rig = Rig()
    rig.reply(SECOND * 3)
    rig.done()
    rig.play(1.0)
    rig.down.clear()
    rig.take(rig.table.server(STARTED, rig.wire.now))
    assert rig.told == [STARTED["type"], "output_audio_buffer.cleared"]
    (truncate,) = rig.up
    assert truncate["type"] == "conversation.item.truncate"
    assert (truncate["item_id"], truncate["content_index"]) == ("i1", 0)
    assert 940 <= truncate["audio_end_ms"] <= 1000
    assert rig.wire.queued == 0
    cut = {"item_id": "i1", "audio_end_ms": truncate["audio_end_ms"], "content_index": 0}
    rig.server("conversation.item.truncated", **cut)
    assert rig.told[2:] == ["conversation.item.truncated"]


def test_what_was_not_heard_at_all_is_not_truncated() -> None:
    rig = Rig()
    rig.reply()
    rig.take(rig.table.server(STARTED, rig.wire.now))
    assert (rig.told, rig.up) == ([STARTED["type"]], [])  # nothing had started
    assert rig.wire.queued == 0


def test_speech_while_nothing_plays_is_just_speech() -> None:
    rig = Rig()
    rig.reply(SECOND)
    rig.done()
    rig.play(2.0)
    rig.down.clear()
    rig.take(rig.table.server(STARTED, rig.wire.now))
    assert (rig.told, rig.up) == ([STARTED["type"]], [])


def test_speech_does_not_silence_where_the_session_says_so() -> None:
    session = copy.deepcopy(OWN)
    session["audio"]["input"]["turn_detection"]["interrupt_response"] = False  # type: ignore[index]
    rig = Rig(session)
    rig.reply()
    rig.play(0.03)
    rig.down.clear()
    rig.take(rig.table.server(STARTED, rig.wire.now))
    assert (rig.told, rig.up) == ([STARTED["type"]], [])
    rig.server("session.updated", session=OWN)
    rig.take(rig.table.server(STARTED, rig.wire.now))
    assert rig.told[-1] == "output_audio_buffer.cleared"


def test_a_truncate_of_the_client_silences_and_passes() -> None:
    rig = Rig()
    rig.reply(SECOND * 2)
    rig.play(1.0)
    rig.down.clear()
    truncate = {"item_id": "i1", "content_index": 0, "audio_end_ms": 800}
    rig.client("conversation.item.truncate", **truncate)
    assert rig.told == ["output_audio_buffer.cleared"]
    assert rig.up == [{"type": "conversation.item.truncate", **truncate}]
    assert rig.wire.queued == 0


def test_a_clear_of_the_client_is_done_here() -> None:
    rig = Rig()
    rig.reply(SECOND * 2)
    rig.play(1.0)
    rig.down.clear()
    rig.client("output_audio_buffer.clear")
    assert rig.told == ["output_audio_buffer.cleared"]
    assert rig.asked == ["conversation.item.truncate"]
    rig.client("output_audio_buffer.clear")
    assert len(rig.down) == len(rig.up) == 1


def test_after_a_clear_nothing_of_the_response_is_heard() -> None:
    rig = Rig()
    rig.server("response.created", response={"id": "r1"})
    rig.client("output_audio_buffer.clear")
    rig.delta(SECOND)
    assert rig.wire.queued == 0


@pytest.mark.parametrize("status", ["cancelled", "completed", "failed", "incomplete"])
def test_only_a_response_that_is_cancelled_falls_silent(status: str) -> None:
    rig = Rig()
    rig.reply(SECOND * 2)
    rig.play(1.0)
    rig.down.clear()
    rig.done(status)
    cancelled = status == "cancelled"
    assert rig.told == ["output_audio_buffer.cleared"] * cancelled + ["response.done"]
    assert rig.asked == ["conversation.item.truncate"] * cancelled
    assert (rig.wire.queued == 0) == cancelled


def test_late_sound_of_a_response_that_is_done_is_dropped() -> None:
    rig = Rig()
    rig.reply()
    rig.done("cancelled")
    rig.delta(SECOND)
    assert rig.wire.queued == 0
    rig.reply(SECOND, "r2", "i2")
    assert rig.wire.queued == 24000


def test_the_end_of_another_response_does_not_silence_this_one() -> None:
    rig = Rig()
    rig.reply()
    rig.server("response.created", response={"id": "r2"})
    rig.done("cancelled", "r2")
    assert rig.wire.queued == 24000
    assert "output_audio_buffer.cleared" not in rig.told


def test_too_far_ahead_is_cancelled_once_and_what_waits_is_heard() -> None:
    rig = Rig()
    rig.reply(SECOND * 120)
    for _ in range(3):
        rig.delta(SECOND)
    assert rig.asked == ["response.cancel"]
    assert rig.up[0]["response_id"] == "r1"
    assert [event["error"]["code"] for event in rig.down] == ["backend_overrun"]
    assert rig.table.overruns == 1
    rig.done("cancelled")
    assert rig.wire.queued == 120 * 24000
    rig.play(121)
    assert rig.told[-1] == "output_audio_buffer.stopped"


def test_an_error_about_an_event_of_ours_is_ours() -> None:
    rig = Rig()
    rig.reply()
    rig.play(0.5)
    rig.client("output_audio_buffer.clear")
    rig.down.clear()
    rig.server("error", error={"code": "x", "message": "", "event_id": rig.up[0]["event_id"]})
    assert (rig.down, rig.table.refused) == ([], 1)
    rig.server("error", error={"code": "x", "message": "", "event_id": "the client's"})
    assert rig.told == ["error"]


def test_nobody_waits_for_what_a_lost_server_was_making() -> None:
    rig = Rig()
    rig.reply(SECOND)
    asked = {"type": "response.create", "event_id": "mine"}
    rig.table.sent(asked)
    rig.take(rig.table.lost(rig.wire.now))
    assert rig.told == ["response.done", "error"]
    response = rig.down[0]["response"]
    assert (response["id"], response["status"]) == ("r1", "failed")
    assert response["status_details"]["type"] == "failed"
    assert rig.down[1]["error"]["event_id"] == "mine"
    rig.play(1.1)
    assert rig.told[-1] == "output_audio_buffer.stopped"
    assert rig.wire.sent == 24000
    assert not rig.table.busy


@pytest.mark.parametrize("answer", ["response.created", "error"])
def test_a_response_that_was_answered_is_not_waited_for(answer: str) -> None:
    rig = Rig()
    rig.table.sent({"type": "response.create", "event_id": "mine"})
    rig.server(answer, response={"id": "r"}, error={"event_id": "mine"})
    rig.down.clear()
    rig.take(rig.table.lost(0.0))
    assert "error" not in rig.told


def test_a_new_server_is_told_everything_and_the_client_nothing_again() -> None:
    rig = Rig()
    item = {"id": "u1", "type": "message", "role": "user", "status": "completed"}
    item["content"] = [{"type": "input_text", "text": "hello"}]  # type: ignore[assignment]
    rig.server("conversation.item.added", item=item)
    update = {"type": "session.update", "session": {"instructions": "be brief"}}
    rig.table.sent(update)
    unconfirmed = {"type": "conversation.item.create", "item": {"type": "message", "id": "u2"}}
    rig.table.sent(unconfirmed)
    rig.down.clear()
    rig.take(rig.table.lost(0.0))
    rig.configure({**OWN, "instructions": "be brief"})
    assert rig.asked == ["session.update", *["conversation.item.create"] * 2]
    assert rig.up[0]["session"]["instructions"] == "be brief"
    assert rig.up[1]["item"]["id"] == "u1"
    assert rig.up[2] is unconfirmed
    assert rig.told == ["session.updated"]  # the answer that the lost server owed
    rig.server("conversation.item.added", item=item)
    rig.server("conversation.item.done", item=item)
    rig.server("error", error={"code": "x", "event_id": rig.up[1]["event_id"]})
    assert rig.told == ["session.updated"]
    rig.server("conversation.item.added", item={**item, "id": "u3"})
    assert rig.told[-1] == "conversation.item.added"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
SPECIAL = (
    *("session.created", "session.updated", "session.update", "response.output_audio.delta"),
    *("input_audio_buffer.append", "output_audio_buffer.clear", "conversation.item.truncate"),
    *("response.done", "input_audio_buffer.speech_started", "error"),
)
PASSED = (
    *("response.mcp_call.in_progress", "mcp_list_tools.completed", "rate_limits.updated"),
    *("response.function_call_arguments.done", "response.output_item.done", "something.new"),
    *("conversation.item.retrieved", "response.created", "response.output_audio_transcript.done"),
)


@given(st.sampled_from(PASSED) | st.text(), st.dictionaries(st.text(), json_values, max_size=5))
def test_everything_else_passes_as_it_is_both_ways(kind: str, fields: dict[str, Any]) -> None:
    event = {**fields, "type": kind}
    if kind in SPECIAL or kind.startswith("output_audio_buffer."):
        return
    rig = Rig()
    before = json.dumps(event)
    assert [json.dumps(out.event) for out in rig.table.server(event, 0.0)] == [before]
    assert rig.table.client(event, 0.0) == [Up(event)]
    assert json.dumps(event) == before


FIELDS = (
    *("session", "item", "response", "error", "response_id", "item_id", "delta", "transcript"),
    *("content_index", "audio_end_ms", "event_id", "previous_item_id"),
)


@given(
    st.sampled_from((*SPECIAL, *PASSED, "conversation.item.added")),
    st.dictionaries(
        st.sampled_from(FIELDS),
        json_values
        | st.fixed_dictionaries({"id": json_values, "content": json_values, "audio": json_values}),
    ),
    st.booleans(),
)
def test_no_event_of_a_server_or_client_raises(
    kind: str, fields: dict[str, Any], ready: bool
) -> None:
    rig = Rig(ready=ready)
    event = {**fields, "type": kind}
    rig.take(rig.table.server(event, 0.0))
    rig.take(rig.table.client(event, 0.0))
    rig.table.sent(event)
    rig.take(rig.table.lost(0.0))
    rig.configure(OWN)
