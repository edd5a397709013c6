import pytest

from tests.unit.transceiver.backends.talk import HEARD, SILENT, STARTED, STOPPED, Talk, replied
from transceiver.backends.keeper import FINISH_S, Terms
from transceiver.lifecycle import End
from transceiver.turns.detector import Detector
from transceiver.turns.vad import Stock, Vad


def test_the_end_waits_until_the_reply_was_heard() -> None:
    talk = replied()
    talk.parrot.finish(End.HANGUP, talk.now)
    talk.parrot.pause()
    talk.parrot.resume()
    talk.begin(1)
    talk.run(8.0)
    assert talk.peer.ended == [End.HANGUP]
    assert talk.types[-1] == SILENT
    assert talk.types.count(STARTED) == 1
    assert talk.wire.queued == 0


def test_the_end_comes_when_the_client_does_not_want_to_hear_the_rest() -> None:
    talk = replied()
    talk.parrot.finish(End.HANGUP, talk.now)
    assert not talk.peer.ended
    talk.tell("output_audio_buffer.clear")
    assert talk.peer.ended == [End.HANGUP]


def test_at_the_end_there_is_no_time_to_think() -> None:
    talk = Talk(think_s=5.0)
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0, until="response.created")
    talk.parrot.finish(End.HANGUP, talk.now)
    talk.run(0.3, until=HEARD)
    talk.run(4.0)
    assert talk.peer.ended == [End.HANGUP]
    assert talk.types[-1] == SILENT


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


def test_the_end_waits_for_a_reply_that_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk()
    monkeypatch.setattr(Detector, "suspects", property(lambda self: True))
    talk.run(0.4)
    talk.say(0)
    talk.run(1.0, until="response.created")
    talk.parrot.finish(End.HANGUP, talk.now)
    assert not talk.peer.ended
    talk.run(6.0)
    assert talk.peer.ended == [End.HANGUP]
    assert talk.types[-1] == SILENT


def test_its_detector_serves_another_call(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Vad] = []
    monkeypatch.setattr(Stock, "give_back", lambda self, vad: given.append(vad))
    talk = Talk()
    talk.parrot.close()
    assert given == [talk.parrot._vad]
