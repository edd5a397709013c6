import math

from tests.judges import openai_types
from transceiver.session.expiry import Expiry


def test_a_session_is_warned_and_then_over() -> None:
    expiry = Expiry(ends_at=100.0, warn_s=60.0)
    assert expiry.deadline == 40.0
    assert expiry.timer(39.9) == ([], False)
    (warning,), over = expiry.timer(40.0)
    assert (warning["error"]["code"], over) == ("session_expiring", False)
    assert "60 s" in warning["error"]["message"]
    assert expiry.deadline == 100.0
    assert expiry.timer(99.9) == ([], False)
    (end,), over = expiry.timer(100.0)
    assert (end["error"]["code"], over) == ("session_expired", True)
    assert expiry.deadline == math.inf
    assert expiry.timer(1000.0) == ([], False)
    for event in (warning, end):
        assert openai_types.faults({"event_id": "event_1", **event}) == []


def test_a_late_timer_warns_no_more() -> None:
    (end,), over = Expiry(ends_at=100.0, warn_s=60.0).timer(100.0)
    assert (end["error"]["code"], over) == ("session_expired", True)


def test_no_warning_can_be_wanted() -> None:
    assert Expiry(ends_at=100.0, warn_s=0.0).deadline == 100.0
