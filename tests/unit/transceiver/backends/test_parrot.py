import numpy as np
import pytest

from tests.conversations.clips import clips
from tests.conversations.mouth import RATE as MOUTH_RATE
from tests.conversations.mouth import phrase
from tests.unit.transceiver.backends.talk import (
    CLEARED,
    COMMITTED,
    DONE,
    HEARD,
    SILENT,
    STARTED,
    STOPPED,
    VAD,
    Talk,
    replied,
)
from transceiver.turns.detector import Detector, Turn
from transceiver.turns.vad import RATE


def test_a_turn_is_said_back_and_told_in_order() -> None:
    talk = Talk()
    talk.run(0.4)
    talk.say(0)
    talk.run(6.0)
    assert talk.types == [
        "session.created",
        STARTED,
        STOPPED,
        COMMITTED,
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
        "rate_limits.updated",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        HEARD,
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        DONE,
        SILENT,
    ]
    said = phrase(0)[:: MOUTH_RATE // RATE] * 32768
    said, heard = said[: 2 * RATE], talk.heard()[: 3 * RATE].astype(float)
    lags = range(0, RATE // 2, 4)
    assert max(np.corrcoef(heard[n : n + len(said)], said)[0, 1] for n in lags) > 0.8
    assert talk.last(DONE)["response"]["status"] == "completed"


def test_the_reply_begins_with_the_speech_and_has_little_silence_around() -> None:
    talk = Talk()
    talk.run(2.0)
    talk.say(0)
    ended = talk.now
    talk.run(6.0)
    frames = [at for at, samples in talk.wire.frames if samples is not None]
    assert frames[0] - ended < 0.7
    assert len(frames) / 50 - len(phrase(0)) / MOUTH_RATE < 0.45


def test_who_talks_into_a_reply_silences_it() -> None:
    talk = replied(echo_guard=False)
    before = len(talk.types)
    began = talk.now
    talk.say(1, 0.6)
    decided = talk.wire.frames[-1][0]
    kinds = talk.types[before:]
    assert kinds == [STARTED, CLEARED, "conversation.item.truncated"]
    assert talk.last_sound - began < 0.14
    heard_ms = talk.last("conversation.item.truncated")["audio_end_ms"]
    assert 500 < heard_ms < 640
    talk.run(0.2)
    assert talk.last_sound < decided


def test_a_reply_that_is_interrupted_before_its_end_is_cancelled() -> None:
    talk = Talk({"audio": {"input": {"turn_detection": VAD | {"create_response": False}}}})
    talk.run(0.4)
    talk.say(0)
    talk.run(2.0, until=COMMITTED)
    talk.tell("response.create")
    talk.run(0.5)
    talk.tell("response.cancel", event_id="mine")
    assert talk.last("error")["error"]["code"] == "response_cancel_not_active"
    talk.tell("output_audio_buffer.clear")
    assert talk.types[-2:] == [CLEARED, "conversation.item.truncated"]
    talk.run(1.0)
    assert talk.last_sound < talk.now - 0.9


def test_who_may_not_interrupt_is_answered_after_the_reply() -> None:
    talk = Talk()
    talk.run(0.4)
    talk.update(VAD | {"interrupt_response": False})
    talk.say(0)
    talk.run(2.0, until=HEARD)
    talk.run(0.3)
    talk.say(1, 0.8)
    talk.run(1.0, until="response.created")
    assert 0 < talk.wire.queued < 1.8 * RATE  # of the first
    talk.run(8.0)
    sounds = [kind for kind in talk.types if kind.startswith("output_audio_buffer")]
    assert sounds == [HEARD, SILENT, HEARD, SILENT]
    assert CLEARED not in talk.types
    assert "conversation.item.truncated" not in talk.types


def test_who_may_not_interrupt_takes_no_answer_back_that_is_behind_another() -> None:
    talk = Talk()
    talk.update(VAD | {"interrupt_response": False})
    talk.run(0.4)
    talk.say(0)
    talk.run(2.0, until=HEARD)
    talk.say(1, 0.5)
    talk.run(1.0, until="response.created")
    talk.say(1, 0.5)
    assert SILENT not in talk.types
    assert talk.types.count(STARTED) == 3
    assert CLEARED not in talk.types
    items = {event["item_id"] for event in talk.peer.said if event["type"] == STARTED}
    assert len(items) == 3


def test_no_response_unless_asked_for() -> None:
    talk = Talk()
    talk.run(0.4)
    talk.update(VAD | {"create_response": False})
    talk.say(0)
    talk.run(2.0)
    assert talk.types[-1] == "conversation.item.done"
    assert talk.wire.sent == 0
    talk.tell("response.create")
    talk.run(5.0)
    assert talk.types[-1] == SILENT
    assert talk.wire.sent > RATE


def test_speech_that_goes_on_before_the_reply_is_heard_makes_one_turn_without_a_sound() -> None:
    talk = Talk(think_s=0.6)
    talk.run(0.4)
    talk.say(0, 1.0)
    talk.run(1.0, until="response.created")
    talk.run(0.2)
    talk.say(1, 1.0)
    assert talk.wire.sent == 0
    assert talk.types.count(STARTED) == 2
    assert talk.last(DONE)["response"]["status"] == "cancelled"
    assert talk.last(DONE)["response"]["status_details"]["reason"] == "turn_detected"
    talk.run(5.0)
    assert talk.types.count(COMMITTED) == 1
    items = {event["item_id"] for event in talk.peer.said if event["type"] == STARTED}
    assert len(items) == 1
    assert talk.types[-1] == SILENT
    assert 2.5 * RATE < talk.wire.sent < 3.6 * RATE
    assert CLEARED not in talk.types


@pytest.mark.parametrize("number", [4, 14])  # a pause that ends the turn early, among them
def test_no_reply_begins_while_somebody_speaks(number: int) -> None:
    talk, clip = Talk(), clips()[number]
    talk.hear(clip.samples)
    sounds = [at - 100.0 for at, samples in talk.wire.frames if samples is not None]
    begins = [at for at in sounds if round(at - 0.02, 2) not in {round(s, 2) for s in sounds}]
    assert begins
    assert not [at for at in begins for span in clip.speech if span.start <= at < span.end]


def test_a_new_turn_after_a_reply_is_a_turn_of_its_own() -> None:
    talk = replied()
    talk.run(6.0)
    talk.say(1, 0.8)
    talk.run(6.0)
    assert talk.types.count(COMMITTED) == talk.types.count(SILENT) == 2
    assert talk.wire.sent < len(phrase(0)) / 3 + 1.6 * RATE


def test_push_to_talk() -> None:
    talk = Talk()
    talk.update(None)
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0)
    assert STARTED not in talk.types
    talk.tell("input_audio_buffer.commit")
    assert COMMITTED in talk.types
    assert "response.created" not in talk.types
    talk.tell("response.create")
    talk.run(6.0)
    assert talk.types[-1] == SILENT
    heard_s = talk.wire.sent / RATE
    assert heard_s == pytest.approx(0.4 + len(phrase(0)) / MOUTH_RATE + 1.0, abs=0.1)
    talk.tell("input_audio_buffer.clear")
    talk.tell("input_audio_buffer.commit")
    assert talk.last("error")["error"]["code"] == "input_audio_buffer_commit_empty"


def test_who_forgets_what_was_said_and_speaks_on_has_begun_anew() -> None:
    talk = Talk(think_s=1.0)
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0, until="response.created")
    talk.tell("input_audio_buffer.clear")
    talk.say(1, 0.6)
    assert talk.last(STARTED)["item_id"] != talk.peer.said[1]["item_id"]
    talk.run(3.0)
    assert 0 < talk.wire.sent < 1.4 * RATE


def test_a_turn_that_is_deleted_is_not_said_back() -> None:
    talk = Talk()
    talk.update(VAD | {"create_response": False})
    talk.run(0.4)
    talk.say(0)
    talk.run(2.0, until=COMMITTED)
    item_id = talk.last(COMMITTED)["item_id"]
    talk.tell("conversation.item.delete", item_id=item_id)
    talk.tell("response.create", response={"input": []})
    assert talk.parrot._turn is None
    talk.run(2.0)
    assert talk.wire.sent == 0


def test_a_client_may_commit_what_was_heard_without_a_turn() -> None:
    talk = Talk()
    talk.run(1.0)
    talk.tell("input_audio_buffer.commit")
    assert COMMITTED in talk.types
    talk.tell("response.create")
    talk.run(2.0)
    assert talk.wire.sent == pytest.approx(RATE, abs=RATE / 50)
    talk.tell("input_audio_buffer.commit")
    assert talk.parrot._turn is not None
    assert talk.parrot._turn.ms == 2000  # since the last one


def test_idle_time_makes_a_response() -> None:
    talk = Talk()
    talk.update(VAD | {"idle_timeout_ms": 2000})
    talk.say(0)
    talk.run(6.0, until=SILENT)
    talk.run(2.5, until="input_audio_buffer.timeout_triggered")
    talk.run(1.0)
    assert "error" not in talk.types
    assert talk.types.count("response.created") == 2


def test_memory_is_bounded_however_long_nobody_answers() -> None:
    talk = Talk()
    audio = talk.parrot._audio
    talk.update(None)
    for _ in range(200):
        audio.add(bytes(RATE * 2))
    assert len(audio.samples()) <= 60 * RATE * 2
    talk.update(VAD)
    talk.run(0.1)
    assert not audio.open


@pytest.mark.parametrize("what", ["commit", "clear"])
def test_a_client_may_end_a_turn_in_the_midst_of_speech(what: str) -> None:
    talk = Talk()
    talk.run(0.4)
    talk.begin(0)
    talk.run(1.0)
    talk.tell(f"input_audio_buffer.{what}")
    talk.run(1.0)
    first, second = (event["item_id"] for event in talk.peer.said if event["type"] == STARTED)
    assert first != second
    assert talk.types.count(COMMITTED) == (what == "commit")


def test_pushed_again_it_has_what_was_heard_since() -> None:
    talk = Talk()
    talk.update(None)
    for ms in (1000, 500):
        talk.run(ms / 1000)
        talk.tell("input_audio_buffer.commit")
        assert talk.parrot._turn is not None
        assert talk.parrot._turn.ms == ms


def test_the_detector_knows_when_the_parrot_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []

    def hear(self: Detector, samples: bytes, playing: bool, now: float) -> list[Turn]:
        told.append(playing)
        return _hear(self, samples, playing, now)

    _hear = Detector.hear
    monkeypatch.setattr(Detector, "hear", hear)
    replied()
    assert told[0] is False
    assert told[-1] is True
