"""From mouth to ear by the packets of a call whose every delay is known."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.audio.chirp import Chirps, chirps
from tests.audio.listening import Arrival
from tests.audio.score import Note, encode
from tests.audio.take import Take

CODER_S = 0.0065  # one coder is on the way: this echo mirrors packets
PACKET_S = 0.02


@pytest.fixture(scope="module")
def signal() -> Chirps:
    return chirps(4)


def take(
    signal: Chirps, way: Callable[[Note], float | None], began: float = 1e9, ahead: int = 0
) -> Take:
    """Each packet comes back after `way` seconds, or never; `ahead` ticks in its timestamp."""
    score = encode(signal.samples)
    came = [
        Arrival(began + note.at + each, note.sequence, note.timestamp + ahead, note.payload)
        for note in score
        if (each := way(note)) is not None
    ]
    return Take("rtc_x", score, [began + note.at for note in score], came)


def test_a_steady_way(signal: Chirps) -> None:
    found = take(signal, lambda note: 0.003).delays(signal)
    assert len(found) == len(signal.starts)
    for each in found:
        assert each.delay_s == pytest.approx(PACKET_S + CODER_S + 0.003, abs=0.0005)


def test_a_way_that_becomes_longer_in_the_middle(signal: Chirps) -> None:
    found = take(signal, lambda note: 0.003 if note.at < 2 else 0.043).delays(signal)
    before = [each.delay_s for each in found if each.at_s < 1.9]
    after = [each.delay_s for each in found if each.at_s > 2.1]
    assert np.mean(after) - np.mean(before) == pytest.approx(0.04, abs=0.0005)


def test_an_echo_that_holds_sound_back_under_the_same_timestamps(signal: Chirps) -> None:
    """What packet counts cannot see: packets return at once, with sound of three packets ago."""
    prompt = take(signal, lambda note: 0.003)
    payloads = [b"\x78" + bytes(2)] * 3 + [each.payload for each in prompt.came]
    came = [
        each._replace(payload=payload) for each, payload in zip(prompt.came, payloads, strict=False)
    ]
    late = Take("rtc_x", prompt.score, prompt.sent, came).delays(signal)
    assert np.median([each.delay_s for each in late]) == pytest.approx(0.0895, abs=0.001)


def test_what_never_came_has_no_delay(signal: Chirps) -> None:
    lossy = take(signal, lambda note: None if 1 <= note.at < 2 else 0.003)
    assert not [each for each in lossy.delays(signal) if 1.05 < each.at_s < 1.9]
    ways = lossy.packet_delays()
    assert np.isnan(ways[50:100]).all()
    assert ways[:50] == pytest.approx(0.003, abs=1e-6)
    assert np.isnan(take(signal, lambda note: None).packet_delays()).all()
    assert take(signal, lambda note: None).delays(signal) == []
    assert take(signal, lambda note: None).delays_by_the_clock(signal) == []


def test_by_the_clock_timestamps_may_be_any(signal: Chirps) -> None:
    found = take(signal, lambda note: 0.03, ahead=7 * 48000).delays_by_the_clock(signal)
    assert len(found) == len(signal.starts)
    for each in found:
        assert each.delay_s == pytest.approx(PACKET_S + CODER_S + 0.03, abs=0.0005)
