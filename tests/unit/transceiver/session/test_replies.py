"""What `test_session` does not see from outside: limits, and two replies at once."""

import pytest

from tests.unit.transceiver.session.owner import ids, kinds
from transceiver.session import items
from transceiver.session.commands import Abandon, Clear, Cut, Drop, Output, Respond
from transceiver.session.conversation import MAX_ITEMS, Conversation
from transceiver.session.fields import Refusal
from transceiver.session.replies import Claim, Replies
from transceiver.session.request import Request
from transceiver.session.response import MAX_WRITTEN
from transceiver.session.settings import Settings

SETTINGS = Settings.initial("sess_1", "parrot", 0, detects=True)


class Line:
    def __init__(self) -> None:
        self.conversation = Conversation("conv_1")
        self.replies = Replies(self.conversation, ids())

    def create(self) -> Respond:
        request = Request.read(None, SETTINGS, self.conversation, lambda: "", "turn")
        respond = self.replies.create(request)[-1]
        assert isinstance(respond, Respond)
        return respond


def events(outputs: list[Output]) -> list[str]:
    return kinds([output for output in outputs if isinstance(output, dict)])


def test_a_reply_behind_the_one_that_is_heard_is_cut_with_it() -> None:
    line = Line()
    first = line.create()
    line.replies.hear(first.response_id)
    line.replies.spoken(first.response_id, 1000)
    second = line.create()
    line.replies.began(second.response_id)
    assert line.replies.silence("turn_detected") == [Abandon(second.response_id), Clear()]
    told = line.replies.cut(Cut(first.response_id, first.item_id, 0, 400, 1000))
    assert events(told)[0] == "output_audio_buffer.cleared"
    assert events(told)[-2:] == ["response.done", "conversation.item.truncated"]
    assert not line.replies.active
    assert not line.replies.audible


def test_a_claim_on_the_reply_behind_is_for_no_sound_at_all() -> None:
    line = Line()
    first = line.create()
    line.replies.hear(first.response_id)
    line.replies.spoken(first.response_id, 1000)
    second = line.create()
    line.replies.began(second.response_id)
    line.replies.truncate(Claim(second.item_id, 0, 1, "mine"))
    told = line.replies.cut(Cut(first.response_id, first.item_id, 0, 400, 1000))
    assert events(told)[-2:] == ["conversation.item.truncated", "error"]


def test_a_claim_of_nothing_on_the_reply_behind_leaves_the_other_cut_as_it_is() -> None:
    line = Line()
    first = line.create()
    line.replies.hear(first.response_id)
    line.replies.spoken(first.response_id, 1000)
    second = line.create()
    line.replies.began(second.response_id)
    line.replies.truncate(Claim(second.item_id, 0, 0, "mine"))
    told = line.replies.cut(Cut(first.response_id, first.item_id, 0, 400, 1000))
    cuts = [each for each in told if isinstance(each, dict) and "audio_end_ms" in each]
    assert [(each["item_id"], each["audio_end_ms"]) for each in cuts] == [
        (first.item_id, 400),
        (second.item_id, 0),
    ]


def test_nothing_is_asked_twice_of_what_was_abandoned() -> None:
    line = Line()
    reply = line.create()
    assert line.replies.silence("turn_detected") == [Abandon(reply.response_id), Clear()]
    assert line.replies.silence("turn_detected") == [Clear()]
    with pytest.raises(Refusal):
        line.replies.cancel(None)
    assert line.replies.hear(reply.response_id) == []


def test_the_sound_of_a_turn_that_makes_way_for_the_reply_is_not_wanted() -> None:
    line = Line()
    for number in range(MAX_ITEMS):
        line.conversation.add(items.spoken_turn(f"turn_{number}"))
    reply = line.create()
    assert Drop("turn_0") in line.replies.began(reply.response_id)


def test_what_is_written_has_a_length() -> None:
    line = Line()
    reply = line.create()
    line.replies.hear(reply.response_id)
    for _ in range(3):
        line.replies.write(reply.response_id, "x" * (MAX_WRITTEN // 2))
    told = line.replies.spoken(reply.response_id, 1000)
    done = next(each for each in told if isinstance(each, dict) and "transcript" in each)
    assert len(done["transcript"]) == MAX_WRITTEN
