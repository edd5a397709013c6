"""The client's turns: committed, cleared, transcribed."""

from tests.unit.transceiver.session.owner import Owner, error, judge, kinds
from transceiver.session.commands import Forget

TRANSCRIPTION = {"input": {"transcription": {"model": "gpt-4o-mini-transcribe"}}}
TURN = [
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.done",
]
CREATED = ["response.created", "rate_limits.updated"]


def test_a_client_commits_its_own_turns() -> None:
    owner = Owner({"audio": {"input": {"turn_detection": None}}})
    assert owner.do(owner.session.speech_started(0)) == []
    told = owner.say("input_audio_buffer.commit")
    assert kinds(told) == TURN[2:]
    owner.say("response.create")
    assert owner.response.turn_item_id == told[0]["item_id"]
    owner.reply()
    owner.drain()
    judge(owner)


def test_an_empty_commit_is_an_error() -> None:
    owner = Owner({"audio": {"input": {"turn_detection": None}}})
    owner.heard_ms = 0
    told = error(owner.say("input_audio_buffer.commit", event_id="mine"))
    assert (told["code"], told["event_id"]) == ("input_audio_buffer_commit_empty", "mine")


def test_a_commit_in_the_middle_of_speech_ends_the_turn(owner: Owner) -> None:
    (started,) = owner.do(owner.session.speech_started(0))
    told = owner.say("input_audio_buffer.commit")
    assert told[0]["item_id"] == started["item_id"]
    assert owner.do(owner.session.speech_stopped(900)) == []
    judge(owner)


def test_an_empty_commit_leaves_the_open_turn_alone(owner: Owner) -> None:
    owner.do(owner.session.speech_started(0))
    owner.heard_ms = 0
    assert kinds(owner.say("input_audio_buffer.commit")) == ["error"]
    assert kinds(owner.do(owner.session.speech_stopped(900)))[:2] == TURN[1:3]
    judge(owner, ended=False)


def test_a_commit_in_speech_that_resumed_is_a_turn_of_its_own(owner: Owner) -> None:
    first = owner.turn()[0]["item_id"]
    owner.do(owner.session.speech_resumed(1300))
    told = owner.say("input_audio_buffer.commit")
    assert kinds(told) == TURN[2:]
    assert told[0]["item_id"] != first
    judge(owner)


def test_the_input_can_be_cleared(owner: Owner) -> None:
    owner.do(owner.session.speech_started(0))
    assert kinds(owner.say("input_audio_buffer.clear")) == ["input_audio_buffer.cleared"]
    assert owner.commands[-1] == Forget()
    assert owner.do(owner.session.speech_stopped(900)) == []
    judge(owner)


def test_a_turn_is_not_answered_when_the_client_does_that() -> None:
    owner = Owner(
        {"audio": {"input": {"turn_detection": {"type": "server_vad", "create_response": False}}}}
    )
    assert kinds(owner.turn()) == TURN


def test_a_turn_is_not_answered_while_another_is(owner: Owner) -> None:
    owner.detect({"type": "server_vad", "interrupt_response": False})
    owner.turn()
    assert kinds(owner.turn()) == TURN


def test_nobody_who_listens_is_told_once_per_turn() -> None:
    owner = Owner({"audio": TRANSCRIPTION})
    told = owner.turn()
    assert kinds(told) == [*TURN, "conversation.item.input_audio_transcription.failed", *CREATED]
    assert told[5]["error"]["code"] == "no_recogniser"
    owner.do(owner.session.speech_resumed(1300))
    assert kinds(owner.do(owner.session.speech_stopped(2000))) == [TURN[1], *CREATED]
    judge(owner, ended=False)


def test_a_transcript_comes_when_it_was_asked_for() -> None:
    owner = Owner({"audio": TRANSCRIPTION}, recognises=True)
    item_id = owner.turn()[0]["item_id"]
    (told,) = owner.do(owner.session.transcribed(item_id, "hello", 1.5))
    assert told["transcript"] == "hello"
    assert told["usage"] == {"type": "duration", "seconds": 1.5}
    assert owner.item(item_id)["content"][0]["transcript"] == "hello"
    assert owner.do(owner.session.transcribed(item_id, "again", 1.5)) == []
    judge(owner, ended=False)


def test_speech_that_was_not_understood_is_told() -> None:
    owner = Owner({"audio": TRANSCRIPTION}, recognises=True)
    item_id = owner.turn()[0]["item_id"]
    (told,) = owner.do(owner.session.transcribed(item_id, None, 1.5))
    assert told["error"]["code"] == "transcription_failed"
    judge(owner, ended=False)


def test_no_transcript_comes_unasked() -> None:
    owner = Owner(recognises=True)
    item_id = owner.turn()[0]["item_id"]
    assert owner.do(owner.session.transcribed(item_id, "hello", 1.5)) == []
