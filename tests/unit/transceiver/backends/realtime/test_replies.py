import pytest

from tests.unit.transceiver.backends.realtime.rig import SECOND, STARTED, Rig


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
    assert (rig.table.replies.undecodable, rig.down, rig.up) == (1, [], [])


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


def test_sound_after_the_end_is_dropped_when_all_was_heard_too() -> None:
    rig = Rig()
    rig.reply()
    rig.done()
    rig.play(1.1)
    rig.delta(SECOND)
    assert rig.wire.queued == 0


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
    assert rig.table.replies.overruns == 1
    rig.done("cancelled")
    assert rig.wire.queued == 120 * 24000
    rig.play(121)
    assert rig.told[-1] == "output_audio_buffer.stopped"


def test_a_response_that_is_cancelled_behind_another_is_never_heard() -> None:
    rig = Rig()
    rig.reply(SECOND * 2)
    rig.done()
    rig.play(0.5)
    rig.reply(SECOND, "r2", "i2")
    rig.done("cancelled", "r2")
    rig.play(3.0)
    assert rig.told == ["response.done", "output_audio_buffer.stopped"]
    assert rig.wire.sent == 2 * 24000
    assert rig.asked == []


def test_of_a_response_that_is_cancelled_behind_another_a_frame_is_heard_at_most() -> None:
    rig = Rig()
    rig.reply(SECOND + bytes(100))
    rig.done()
    rig.play(0.5)
    rig.reply(SECOND, "r2", "i2")
    rig.done("cancelled", "r2")
    rig.play(3.0)
    assert rig.told[-2:] == ["output_audio_buffer.started", "output_audio_buffer.cleared"]
    assert rig.wire.sent == 24000 + 480


def test_a_truncate_of_what_was_heard_before_leaves_the_reply_alone() -> None:
    rig = Rig()
    rig.reply()
    rig.done()
    rig.play(1.5)
    rig.reply(SECOND * 2, "r2", "i2")
    rig.play(0.5)
    rig.down.clear()
    rig.client("conversation.item.truncate", item_id="i1", content_index=0, audio_end_ms=500)
    rig.client("conversation.item.truncate", item_id=["i1"])
    assert rig.asked == ["conversation.item.truncate"] * 2
    assert rig.told == []
    assert rig.playback.playing


def test_a_truncate_of_what_waits_tells_how_much_was_heard_of_what_played() -> None:
    rig = Rig()
    rig.reply(SECOND * 2)
    rig.done()
    rig.play(1.0)
    rig.reply(SECOND, "r2", "i2")
    rig.client("conversation.item.truncate", item_id="i2", content_index=0, audio_end_ms=0)
    assert [event["item_id"] for event in rig.up] == ["i1", "i2"]
    assert not rig.playback.playing
