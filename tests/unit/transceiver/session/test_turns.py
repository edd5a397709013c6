"""What `test_session` does not see from outside."""

from tests.unit.transceiver.session.owner import ids
from transceiver.session import items
from transceiver.session.commands import Drop
from transceiver.session.conversation import MAX_ITEMS, Conversation
from transceiver.session.turns import MAX_AWAITED, MAX_TRANSCRIPT, Turns


def test_only_so_many_transcripts_are_awaited() -> None:
    turns = Turns(Conversation("conv_1"), ids(), recognises=True)
    for number in range(MAX_AWAITED + 1):
        turns.await_transcript(f"item_{number}")
    assert turns.transcribed("item_0", "late", 1.0) == []
    assert turns.transcribed("item_1", "in time", 1.0) != []


def test_a_transcript_has_a_length() -> None:
    turns = Turns(Conversation("conv_1"), ids(), recognises=True)
    turns.await_transcript("item_1")
    (told,) = turns.transcribed("item_1", "x" * (MAX_TRANSCRIPT + 1), 1.0)
    assert isinstance(told, dict)
    assert len(told["transcript"]) == MAX_TRANSCRIPT


def test_the_sound_of_turns_that_are_forgotten_is_not_wanted() -> None:
    conversation = Conversation("conv_1")
    turns = Turns(conversation, ids(), recognises=False)
    for _ in range(MAX_ITEMS):
        turns.started(0)
        outputs, _item_id = turns.stopped(1)
        assert not any(isinstance(output, Drop) for output in outputs)
    oldest = conversation.newest_first()[-1]["id"]
    turns.started(0)
    assert Drop(oldest) in turns.stopped(1)[0]


def test_speech_resumes_as_a_turn_of_its_own_if_there_was_none() -> None:
    turns = Turns(Conversation("conv_1"), ids(), recognises=False)
    turns.resumed(0)
    assert turns.item_id is not None


def test_positions_are_never_before_the_beginning() -> None:
    turns = Turns(Conversation("conv_1"), ids(), recognises=False)
    (started,) = turns.started(-300)
    assert isinstance(started, dict)
    assert started["audio_start_ms"] == 0


def test_a_transcript_is_not_written_into_an_item_that_took_the_place_of_its_turn() -> None:
    conversation = Conversation("conv_1")
    turns = Turns(conversation, ids(), recognises=True)
    turns.started(0)
    _outputs, item_id = turns.stopped(1)
    assert item_id is not None
    turns.await_transcript(item_id)
    conversation.remove(item_id)
    call = {"type": "function_call", "id": item_id, "name": "f", "arguments": "{}"}
    conversation.add(items.read(call, "unused"))
    assert turns.transcribed(item_id, "hello", 1.0) != []
    assert "content" not in conversation.get(item_id)
