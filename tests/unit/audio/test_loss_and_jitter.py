"""Which packets the hop loses is known beforehand; and what it is judged by."""

from collections import Counter

from tests.audio.loss_and_jitter import BAD, CALM, LOSS, followed_by_a_copy, lost_of
from tests.audio.score import Note, encode
from tests.lab import speech
from tests.lab.frame import Kind
from tests.lab.impairment import DOWN, UP, Frame, Impairment


def test_the_hop_loses_the_same_whatever_else_it_passes() -> None:
    hop = Impairment([BAD], seed=1)
    client, now = ("10.1.0.9", 40000), 55.0
    kept: Counter[int] = Counter()
    for number in range(1000):
        for other in (Kind.STUN, Kind.RTCP):
            hop.decide(Frame(UP, other, client, 90), now)
        hop.decide(Frame(DOWN, Kind.RTP, client, 130), now)
        kept[number] = len(hop.decide(Frame(UP, Kind.RTP, client, 70 + number % 50), now))
        now += 0.019
    lost = lost_of(1000, BAD)
    assert lost == [number for number in range(1000) if not kept[number]]
    assert 0.6 * LOSS < len(lost) / 1000 < 1.4 * LOSS
    assert lost_of(1000, BAD, seed=2) != lost
    assert lost_of(1000, CALM) == []


def test_a_copy_helps_only_if_its_packet_came() -> None:
    notes = encode(speech.spoken(5), fec=True)
    quiet = Note(0, 0, 0, b"\xf8\xff\xfe")
    number = next(n for n in range(50, 250) if followed_by_a_copy(notes, n, [n]))
    assert not followed_by_a_copy(notes, number, [number, number + 1])
    assert not followed_by_a_copy([*notes[: number + 1], quiet], number, [number])
    assert not followed_by_a_copy(notes, len(notes) - 1, [len(notes) - 1])
