import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.conversations.mouth import RATE as MOUTH_RATE
from tests.conversations.mouth import phrase
from tests.unit.transceiver.backends.around import Wire
from tests.unit.transceiver.backends.talk import Talk
from transceiver.backends.answers import HOLD_S
from transceiver.backends.keeper import FINISH_S, Terms
from transceiver.lifecycle import End
from transceiver.turns.guard import Guard
from transceiver.turns.vad import RATE

VAD = {"type": "server_vad"}
STARTED, STOPPED = "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"
HEARD, SILENT = "output_audio_buffer.started", "output_audio_buffer.stopped"
CLEARED, DONE = "output_audio_buffer.cleared", "response.done"
COMMITTED = "input_audio_buffer.committed"


def replied(**parrot: Any) -> Talk:
    """A turn was said, and its reply is heard since half a second."""
    talk = Talk(**parrot)
    talk.run(0.4)
    talk.say(0)
    talk.run(2.0, until=HEARD)
    talk.run(0.5)
    return talk


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


def test_a_new_turn_after_a_reply_is_a_turn_of_its_own() -> None:
    talk = replied()
    talk.run(6.0)
    talk.say(1, 0.8)
    talk.run(6.0)
    assert talk.types.count(COMMITTED) == talk.types.count(SILENT) == 2
    assert talk.wire.sent < len(phrase(0)) / 3 + 1.6 * RATE


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
    talk = Talk()
    talk.run(0.4)
    talk.say(0)
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


def test_a_suspicion_ends_when_nothing_more_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk()
    talk.run(0.4)
    talk.say(0)
    monkeypatch.setattr(type(talk.parrot._detector), "suspects", property(lambda self: True))
    talk.run(1.0, until="response.created")
    talk.muted = True
    talk.run(HOLD_S + 0.1)
    assert HEARD in talk.types


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


def test_cancelled_while_it_thinks_nothing_is_heard() -> None:
    talk = Talk(think_s=1.0)
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0, until="response.created")
    talk.tell("response.cancel")
    assert not talk.parrot._answers.pending
    assert talk.last(DONE)["response"]["status_details"]["reason"] == "client_cancelled"
    talk.run(3.0)
    assert talk.wire.sent == 0
    assert talk.parrot._answers.deadline == math.inf


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


@pytest.mark.parametrize("modality", ["audio", "text"])
def test_what_is_written_is_written_back(modality: str) -> None:
    talk = Talk()
    content = [{"type": "input_text", "text": "Polly wants a cracker"}]
    item = {"type": "message", "role": "user", "content": content}
    talk.tell("conversation.item.create", item=item)
    talk.tell("response.create", response={"output_modalities": [modality]})
    talk.run(0.5)
    assert talk.wire.sent == 0
    (reply,) = talk.last(DONE)["response"]["output"]
    assert "Polly wants a cracker" in reply["content"][0].values()


def test_a_spoken_turn_is_not_written_back_without_a_recogniser() -> None:
    talk = Talk()
    talk.update(VAD, output_modalities=["text"])
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0)
    done = talk.last(DONE)["response"]
    assert done["status"] == "failed"
    assert done["status_details"]["error"]["code"] == "no_recogniser"


class Ears:
    """A recogniser that answers when told."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, Any]] = []

    def recognise(self, samples: bytes, done: Any) -> None:
        self.asked.append((samples, done))

    def answer(self, words: str | None) -> None:
        self.asked.pop(0)[1](words)


TRANSCRIBE = {"audio": {"input": {"transcription": {"model": "any"}}}}
TRANSCRIBED = "conversation.item.input_audio_transcription.completed"


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


def test_the_end_waits_until_the_reply_was_heard() -> None:
    talk = replied()
    talk.parrot.finish(End.HANGUP, talk.now)
    talk.begin(1)
    talk.run(8.0)
    assert talk.peer.ended == [End.HANGUP]
    assert talk.types[-1] == SILENT
    assert talk.types.count(STARTED) == 1
    assert talk.wire.queued == 0


def test_the_end_does_not_wait_for_nothing_nor_for_long() -> None:
    talk = Talk()
    talk.run(0.4)
    talk.parrot.finish(End.HANGUP, talk.now)
    assert talk.peer.ended == [End.HANGUP]
    talk = replied()
    talk.wire.away = True
    talk.parrot.pause()
    talk.parrot.finish(End.SHUTDOWN, talk.now)
    began = talk.now
    talk.run(20.0)
    assert talk.peer.ended == [End.SHUTDOWN]
    assert talk.now - began == pytest.approx(FINISH_S, abs=0.05)


def test_a_call_that_ends_before_it_has_begun() -> None:
    talk = Talk()
    parrot = type(talk.parrot)(talk.peer, talk.parrot._vads)
    parrot.finish(End.HANGUP, 1.0)
    assert talk.peer.ended == [End.HANGUP]
    parrot.close()


def test_the_session_has_its_length() -> None:
    talk = Talk(terms=Terms(length_s=5.0, warning_s=2.0, unix_time=lambda: 1e9))
    assert talk.last("session.created")["session"]["expires_at"] == 1_000_000_005
    talk.run(20.0)
    codes = [event["error"]["code"] for event in talk.peer.said if event["type"] == "error"]
    assert codes == ["session_expiring", "session_expired"]
    assert talk.peer.ended == [End.EXPIRED]
    assert talk.now == pytest.approx(105.0, abs=0.05)


def test_away_it_keeps_what_waits() -> None:
    talk = replied()
    talk.parrot.pause()
    talk.wire.away = talk.muted = True
    waits = talk.wire.queued
    talk.run(5.0)
    assert talk.wire.queued == waits
    talk.parrot.resume()
    talk.wire.away = talk.muted = False
    talk.run(6.0)
    assert talk.types[-1] == SILENT
    assert talk.types.count(HEARD) == 1


def test_who_stops_sending_has_ended_the_turn() -> None:
    talk = Talk()
    talk.run(0.4)
    talk.say(0)
    talk.muted = True
    talk.run(1.0, until=STOPPED)
    talk.run(5.0)
    assert talk.types[-1] == SILENT


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


def test_frames_leave_every_20_ms() -> None:
    talk = replied()
    times = [at for at, _ in talk.wire.frames]
    assert {round(late - early, 3) for early, late in pairwise(times)} == {0.02}
    assert isinstance(talk.wire, Wire)
