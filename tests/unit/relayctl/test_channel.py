import pytest

from relayctl.channel import Channel, ChannelClosed
from relayctl.messages import MessageError, RetireNexthop, Started


@pytest.fixture
def ends() -> tuple[Channel, Channel]:
    ours, raw = Channel.pair()
    return ours, Channel(raw)


def test_messages_arrive_in_order_both_ways(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    assert all(ours.send(RetireNexthop(index)) for index in range(5))
    assert theirs.send(Started(1))
    assert list(theirs.receive()) == [RetireNexthop(index) for index in range(5)]
    assert list(ours.receive()) == [Started(1)]
    assert list(ours.receive()) == []
    for end in ends:
        end.close()


def test_a_full_pipe_drops_and_counts(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    sent = 0
    while ours.send(RetireNexthop(sent)):
        sent += 1
    assert sent > 100
    assert ours.dropped == 1
    assert list(theirs.receive()) == [RetireNexthop(index) for index in range(sent)]
    assert ours.send(RetireNexthop(0))
    for end in ends:
        end.close()


def test_who_waits_for_room_loses_nothing(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    sent = 0
    while ours.has_room():
        assert ours.send(RetireNexthop(sent))
        sent += 1
    assert sent > 100
    assert ours.dropped == 0
    assert len(list(theirs.receive())) == sent
    assert ours.has_room()
    for end in ends:
        end.close()


def test_the_end_of_the_pipe_is_the_end_of_the_other_side(ends: tuple[Channel, Channel]) -> None:
    ours, theirs = ends
    ours.send(Started(1))
    ours.close()
    messages = theirs.receive()
    assert next(messages) == Started(1)
    with pytest.raises(ChannelClosed):
        next(messages)
    assert not theirs.send(Started(1))
    theirs.close()


def test_junk_is_an_error() -> None:
    ours, raw = Channel.pair()
    raw.send(b"hello")
    with pytest.raises(MessageError):
        list(ours.receive())
    ours.close()
    raw.close()
