import numpy as np
import pytest

from tests.chaos.account import Account, Caller, Way, Window, account, columns, way
from tests.chaos.tap import End, Seen


def stream(
    began: float, ended: float, first: int = 0, without: tuple[float, float] = (0, 0)
) -> Seen:
    """A packet each 20 ms, but for those within `without`."""
    times = np.arange(round(began * 50), round(ended * 50)) / 50
    numbers = (first + np.arange(len(times))) % 65536
    kept = (times < without[0]) | (times >= without[1])
    return Seen(times[kept], numbers[kept].astype(np.uint16))


SENT = stream(0, 20)


def test_nothing_happens() -> None:
    found = way(SENT, SENT, Window(5, 15))
    assert (found.sent, found.lost, found.alive) == (476, 0, True)
    assert found.gap_s == pytest.approx(0.02)
    assert found.last_outage == 5


def test_a_hole() -> None:
    found = way(SENT, stream(0, 20, without=(8, 9)), Window(5, 15))
    assert (found.lost, found.alive) == (50, True)
    assert found.gap_s == pytest.approx(1.02)
    assert found.last_outage == pytest.approx(9)


def test_a_gap_that_the_control_run_had_too_is_no_outage() -> None:
    jumped = stream(0, 20, without=(8, 8.3))
    hurried = Seen(np.sort(np.append(jumped.times, [8.3] * 15)), SENT.numbers)

    def look(end: End, sent: bool, ssrc: int) -> Seen:
        return SENT if sent else hurried

    for usual_s, last_outage in ((0.02, 8.3), (0.3, 5.0)):
        (found,) = account([Caller("lean", 1, 2)], look, Window(5, 15), usual_s)
        assert found.up.lost == 0
        assert found.up.last_outage == pytest.approx(last_outage)


def test_numbers_wrap() -> None:
    sent = stream(0, 20, first=65_300)
    received = stream(0, 20, first=65_300, without=(8, 9))
    assert way(sent, received, Window(5, 15)).lost == 50


def test_a_gap_that_lasts_when_the_window_begins() -> None:
    received = stream(0, 20, without=(4, 6))
    assert way(SENT, received, Window(5, 15)).gap_s == pytest.approx(2.02)
    assert way(SENT, received, Window(5, 15, exact=True)).gap_s == pytest.approx(1)


def test_a_call_that_ended() -> None:
    found = way(SENT, stream(0, 10), Window(5, 15))
    assert not found.alive
    assert found.gap_s == pytest.approx(5.02)
    assert found.last_outage == pytest.approx(15)


def test_a_late_packet_is_not_lost() -> None:
    late = Seen(SENT.times + 0.4, SENT.numbers)
    assert way(SENT, late, Window(5, 15)).lost == 0


def test_ways_are_told_apart() -> None:
    def look(end: End, sent: bool, ssrc: int) -> Seen:
        broken = (end, sent, ssrc) == ("client", False, 2)
        return stream(0, 20, without=(8, 9)) if broken else SENT

    (found,) = account([Caller("lean", 1, 2)], look, Window(5, 15))
    assert (found.up.lost, found.down.lost) == (0, 50)


def call(kind: str, gap_s: float, lost: int = 0, alive: bool = True) -> Account:
    one = Way(500, lost, gap_s, 7.5 if lost else 5.0, alive)
    return Account(kind, one, one)


def test_the_figure_is_the_difference() -> None:
    control = [call("lean", 0.03, lost=1), call("lean", 0.05), call("firefox", 0.02)]
    fault = [call("lean", 0.13, lost=3), call("lean", 0.01), call("firefox", 0.5, 4, alive=False)]
    found = columns(control, fault, began=5.0)
    assert found["gap_up_p50"] == 100
    assert found["gap_up_max"] == 450
    assert (found["lost_up"], found["lost_down"]) == (6, 6)
    assert found["lost_share"] == 0.4
    assert found["calls_lost"] == 1
    assert found["recovery"] == 2.5
    assert found["calls_lost_lean"] == 0
    assert found["lost_up_lean"] == 2
    assert found["gap_down_max_lean"] == 80


def test_better_than_the_control_run_is_no_fault() -> None:
    found = columns([call("lean", 0.09, lost=3)], [call("lean", 0.02)], began=5.0)
    assert (found["gap_up_max"], found["lost_up"]) == (0, 0)
