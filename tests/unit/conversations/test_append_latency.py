import pytest

from tests.conversations import append_latency
from tests.conversations.append_latency import APPEND, PACKET_BYTES
from tests.conversations.caller import Sent
from tests.realtime_server.record import Entry


def sent(count: int, speech: range = range(0)) -> list[Sent]:
    return [Sent(n * 0.02, n in speech) for n in range(count)]


def append(at: float, packets: int = 1) -> Entry:
    return Entry(at, 1, {"type": APPEND, "bytes": packets * PACKET_BYTES})


def test_each_packet_has_its_append() -> None:
    received = [append(n * 0.02 + 0.003) for n in range(5)]
    assert append_latency.latencies(sent(5), received) == pytest.approx([0.003] * 5)


def test_what_came_before_the_backend_is_left_out() -> None:
    received = [append(n * 0.02 + 0.003) for n in range(2, 5)]
    assert append_latency.latencies(sent(5), received) == pytest.approx([0.003] * 3)


def test_an_append_may_hold_more_packets() -> None:
    received = [append(0.05, 2), append(0.09, 2)]
    assert append_latency.latencies(sent(4), received) == pytest.approx([0.05, 0.03, 0.05, 0.03])


def test_other_events_are_no_appends() -> None:
    received = [Entry(0.0, 1, {"type": "session.update"}), append(0.001)]
    assert append_latency.latencies(sent(1), received) == pytest.approx([0.001])


def test_a_phrase_that_arrives_while_it_is_said() -> None:
    said = sent(20, range(5, 10))
    assert append_latency.first_while_speaking(said, [0.03] * 20)
    assert not append_latency.first_while_speaking(said, [0.09] * 20)
    assert not append_latency.first_while_speaking(sent(20), [0.0] * 20)
