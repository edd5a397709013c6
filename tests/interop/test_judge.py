"""What makes a cell fail."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from tests.interop import judge
from tests.interop.judge import Seen
from tests.interop.stage import words
from tests.lab import speech

LOUD, QUIET = 0.1, 0.0
CUT = {"way": "speech", "at": 20.0, "until": 22.0}
TIMELINE = {"answer_ms": 1.0, "ice_ms": 2.0, "dtls_ms": 3.0}


def line(*loud: tuple[float, float]) -> list[tuple[float, float]]:
    """Levels of 30 s, loud between these moments."""
    moments = [n / 50 for n in range(30 * 50)]
    return [(at, LOUD if any(a < at <= b for a, b in loud) else QUIET) for at in moments]


def seen(**changes: Any) -> Seen:
    """A client with whom all is well."""
    head, said = np.zeros(speech.RATE, np.float32), words()[: 3 * speech.RATE]
    well = Seen(
        marks={"silent": 1.0, "said": 2.0, "replied": 5.0, "hushed": 9.0},
        cuts=[CUT],
        levels=line((5.0, 7.7), (19.0, 20.4)),
        heard=None,
        arrived=np.concatenate([head, said, head]),
        messages=(),
        call={"timeline": TIMELINE, "state": "ended", "reason": "hangup"},
    )
    return dataclasses.replace(well, **changes)


def test_a_client_with_whom_all_is_well() -> None:
    well = seen()
    assert judge.connects(well) is None
    assert judge.audio_up(well, words()) is None
    assert judge.audio_down(well, words()) is None
    assert judge.barge_in(well) is None
    assert judge.ended(well, "closed_by_peer", "hangup") is None


def test_a_call_without_dtls_is_not_connected() -> None:
    call = {"timeline": TIMELINE | {"dtls_ms": None}}
    assert judge.connects(seen(call=call)) == "never reached dtls_ms"


def test_sound_where_silence_was_sent_is_no_proof() -> None:
    assert "silent" in str(judge.audio_up(seen(arrived=words()[: 4 * speech.RATE]), words()))
    early = judge.audio_down(seen(levels=line((1.2, 1.5), (5.0, 7.7))), words())
    assert "before the reply" in str(early)


def test_a_reply_that_nobody_hears() -> None:
    assert "during the reply" in str(judge.audio_down(seen(levels=line()), words()))


def test_other_words_came_back() -> None:
    assert "likeness" in str(judge.audio_down(seen(heard=speech.spoken(4.0)), words()))


@pytest.mark.parametrize("loud", [((19.0, 21.5),), ()])
def test_a_reply_that_goes_on_or_never_was_is_not_cut(
    loud: tuple[tuple[float, float], ...],
) -> None:
    assert judge.barge_in(seen(levels=line(*loud))) is not None
    assert judge.barge_in(seen(cuts=[])) == "nothing was cut"


def test_the_end_has_its_reason() -> None:
    assert judge.ended(seen(), "closed_by_peer") == "call is ended: hangup"
    assert judge.ended(seen(call={"state": "connected"}), "hangup") is not None


def test_a_restart_changes_the_ufrag_and_goes_on() -> None:
    restart = {"before": "a", "after": "b", "said": 19.0, "until": 21.0}
    assert judge.restarted(seen(), restart) is None
    assert judge.restarted(seen(), restart | {"after": "a"}) == "the server's ufrag stayed"
    assert judge.restarted(seen(levels=line()), restart) == "no reply after it"
    assert judge.restarted(seen(), None) == "not tried"


def test_each_cut_is_told() -> None:
    cleared = json.dumps({"type": "output_audio_buffer.cleared"})
    assert judge.interrupted(seen(messages=[cleared])) is None
    assert judge.interrupted(seen()) == "0 of 1 cuts told"


def test_events_begin_with_the_session_and_are_known() -> None:
    strange = [json.dumps({"type": "session.created", "event_id": "e", "session": {}})]
    assert "faults" in str(judge.realtime_events(seen(messages=strange)))
    assert "first events" in str(judge.realtime_events(seen(messages=["{}"])))
    assert "no JSON" in str(judge.realtime_events(seen(messages=["{"])))


def test_an_error_that_nobody_asked_for() -> None:
    error = {"type": "error", "event_id": "e", "error": {"type": "x", "code": "odd"}}
    told = [json.dumps({"type": "session.created"}), json.dumps(error)]
    assert judge.realtime_events(seen(messages=told)) == "errors ['odd']"
