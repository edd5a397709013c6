import math

import pytest

from tests.conversations.mouth import RATE as MOUTH_RATE
from tests.conversations.mouth import phrase
from tests.unit.transceiver.backends.around import Wire
from tests.unit.transceiver.backends.talk import (
    COMMITTED,
    DONE,
    HEARD,
    SILENT,
    TRANSCRIBE,
    TRANSCRIBED,
    VAD,
    Ears,
    Talk,
    replied,
)
from transceiver.backends.answers import HOLD_S
from transceiver.turns.guard import Guard


def test_the_reply_waits_while_speech_is_suspected(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk()
    detector = talk.parrot._detector
    suspects = False
    monkeypatch.setattr(type(detector), "suspects", property(lambda self: suspects))
    talk.run(0.4)
    talk.say(0)
    suspects = True
    talk.run(3.0)
    assert talk.wire.sent == 0
    suspects = False
    talk.run(0.1)
    assert talk.wire.sent > 0
    assert HEARD in talk.types


def test_a_suspicion_just_before_the_first_frame_takes_the_reply_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ears = Ears()
    talk = Talk(TRANSCRIBE, recogniser=ears, think_s=0.1)
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0, until="response.created")
    ears.answer("it is")
    talk.wire.away = True  # no frame leaves yet
    while not talk.parrot._answers.playing:
        talk.packet()
    suspects = True
    monkeypatch.setattr(type(talk.parrot._detector), "suspects", property(lambda self: suspects))
    talk.packet()
    talk.wire.away = False
    talk.run(0.3)
    assert talk.wire.sent == 0
    suspects = False
    talk.run(5.0)
    assert talk.types.count(HEARD) == talk.types.count(SILENT) == 1
    assert talk.types.count("response.content_part.added") == 1
    assert talk.last("response.output_audio_transcript.done")["transcript"] == "it is"


def test_a_suspicion_ends_when_nothing_more_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk()
    talk.run(0.4)
    talk.say(0)
    monkeypatch.setattr(type(talk.parrot._detector), "suspects", property(lambda self: True))
    talk.run(1.0, until="response.created")
    talk.muted = True
    talk.run(HOLD_S + 0.1)
    assert HEARD in talk.types


def test_cancelled_while_it_thinks_nothing_is_heard() -> None:
    talk = Talk(think_s=1.0)
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0, until="response.created")
    talk.tell("response.cancel")
    assert not talk.parrot._answers.pending
    assert not talk.parrot._audio.open
    assert talk.last(DONE)["response"]["status_details"]["reason"] == "client_cancelled"
    talk.run(3.0)
    assert talk.wire.sent == 0
    assert talk.parrot._answers.deadline == math.inf


def test_sound_that_is_not_kept_cannot_be_said_back() -> None:
    talk = Talk()
    talk.update(VAD | {"create_response": False})
    talk.run(0.4)
    for _ in range(2):
        talk.say(0, 1.0)
        talk.run(2.0, until=COMMITTED)
    first = next(event["item_id"] for event in talk.peer.said if event["type"] == COMMITTED)
    reference = [{"type": "item_reference", "id": first}]
    talk.tell("response.create", response={"input": reference})
    assert talk.last(DONE)["response"]["status_details"]["error"]["code"] == "no_audio"
    assert talk.wire.sent == 0


@pytest.mark.parametrize("modality", ["audio", "text"])
def test_what_is_written_is_written_back(modality: str) -> None:
    talk = Talk()
    content = [{"type": "input_text", "text": "Polly wants a cracker"}]
    item = {"type": "message", "role": "user", "content": content}
    talk.tell("conversation.item.create", item=item)
    talk.tell("response.create", response={"output_modalities": [modality]})
    talk.run(0.5)
    assert talk.wire.sent == 0
    assert talk.last("response.created")["response"]["output_modalities"] == ["text"]
    assert talk.last("response.output_text.done")["text"] == "Polly wants a cracker"
    done = talk.last(DONE)["response"]
    assert done["status"] == "completed"
    (reply,) = done["output"]
    assert reply["content"] == [{"type": "output_text", "text": "Polly wants a cracker"}]


def test_a_spoken_turn_is_not_written_back_without_a_recogniser() -> None:
    talk = Talk()
    talk.update(VAD, output_modalities=["text"])
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0)
    done = talk.last(DONE)["response"]
    assert done["status"] == "failed"
    assert done["status_details"]["error"]["code"] == "no_recogniser"


def test_a_turn_is_transcribed_if_the_client_wants_it() -> None:
    ears = Ears()
    talk = Talk(TRANSCRIBE, recogniser=ears)
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0)
    ears.answer("it is")
    completed = talk.last(TRANSCRIBED)
    assert completed["transcript"] == "it is"
    assert completed["usage"]["type"] == "duration"
    assert completed["usage"]["seconds"] == pytest.approx(len(phrase(0)) / MOUTH_RATE, abs=0.5)
    assert talk.peer.wakes
    ears.asked.clear()
    talk.parrot.close()


def test_the_words_of_half_a_turn_are_not_told() -> None:
    ears = Ears()
    talk = Talk(TRANSCRIBE, recogniser=ears, think_s=0.5)
    talk.run(0.4)
    talk.say(0, 1.0)
    talk.run(1.0, until="response.created")
    talk.say(1, 1.0)
    ears.answer("half")
    assert TRANSCRIBED not in talk.types
    talk.run(1.0)
    ears.answer("all")
    assert talk.last(TRANSCRIBED)["transcript"] == "all"


def test_a_reply_has_the_words_of_its_turn_if_they_are_known_in_time() -> None:
    ears = Ears()
    talk = Talk(TRANSCRIBE, recogniser=ears, think_s=0.3)
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0, until="response.created")
    ears.answer("it is")
    talk.run(1.0, until=HEARD)
    assert talk.last("response.output_audio_transcript.delta")["delta"] == "it is"


def test_what_was_not_understood_is_not_written_back() -> None:
    ears = Ears()
    talk = Talk({"output_modalities": ["text"]}, recogniser=ears)
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0)
    ears.answer(None)
    done = talk.last(DONE)["response"]
    assert done["status_details"]["error"]["code"] == "transcription_failed"


def test_nothing_is_told_of_words_after_the_end() -> None:
    ears = Ears()
    talk = Talk(TRANSCRIBE, recogniser=ears)
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0)
    talk.parrot.close()
    before = len(talk.types)
    ears.answer("it is")
    assert len(talk.types) == before


@pytest.mark.parametrize("first", ["words", "response"])
def test_a_spoken_turn_is_written_back_once_it_is_understood(first: str) -> None:
    ears = Ears()
    talk = Talk(TRANSCRIBE | {"output_modalities": ["text"]}, recogniser=ears)
    talk.update(VAD | {"create_response": False})
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0)
    if first == "words":
        ears.answer("it is")
    talk.tell("response.create")
    if first == "response":
        assert DONE not in talk.types
        assert talk.parrot._answers.deadline == math.inf
        ears.answer("it is")
    (reply,) = talk.last(DONE)["response"]["output"]
    assert reply["content"][0]["text"] == "it is"


def test_the_guard_knows_what_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[tuple[float, bytes]] = []
    monkeypatch.setattr(Guard, "played", lambda self, samples, now: known.append((now, samples)))
    talk = replied()
    talk.run(5.0)
    sent = [(at, samples) for at, samples in talk.wire.frames if samples]
    assert [at for at, _ in known] == [at for at, _ in sent][: len(known)]
    assert b"".join(samples for _, samples in known[1:20]) == b"".join(s for _, s in sent[1:20])
    assert sum(len(samples) for _, samples in known) == talk.wire.sent * 2


def test_a_reply_that_finds_no_room_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wire, "play", lambda self, samples: False)
    talk = Talk()
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0)
    done = talk.last(DONE)["response"]
    assert done["status_details"]["error"]["code"] == "output_overrun"
    assert not talk.parrot._answers.pending


def test_the_call_is_woken_when_a_reply_begins_and_ends() -> None:
    talk = replied()
    assert talk.peer.wakes == 1
    talk.run(5.0)
    assert talk.peer.wakes == 2
