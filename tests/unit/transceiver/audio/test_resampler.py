import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transceiver.audio.resampler import Resampler

PAIRS = [(48000, 44100), (44100, 48000), (24000, 22050), (22050, 24000), (48000, 32000)]


def noise(rate: int, seconds: float) -> bytes:
    dice = np.random.default_rng(7)
    return (dice.standard_normal(round(rate * seconds)) * 4000).astype("<i2").tobytes()


def values(samples: bytes) -> npt.NDArray[np.float64]:
    return np.frombuffer(samples, "<i2").astype(np.float64)


def whole(pair: tuple[int, int], samples: bytes) -> bytes:
    resampler = Resampler(*pair)
    return resampler.push(samples) + resampler.flush()


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(PAIRS), st.lists(st.integers(0, 3000), min_size=1, max_size=20))
def test_any_pieces_give_the_same_samples(pair: tuple[int, int], sizes: list[int]) -> None:
    samples = noise(pair[0], 0.5)
    resampler, out, at = Resampler(*pair), b"", 0
    for size in sizes:
        out += resampler.push(samples[at : at + size * 2])
        at += size * 2
    out += resampler.push(samples[at:]) + resampler.flush()
    assert out == whole(pair, samples)


@pytest.mark.parametrize("pair", PAIRS)
def test_a_minute_is_a_minute_and_little_is_held_back(pair: tuple[int, int]) -> None:
    rate_in, rate_out = pair
    chunk = rate_in // 50
    resampler, samples, out, held = Resampler(*pair), noise(rate_in, 1), 0, 0.0
    for n in range(60 * 50):
        at = n % 50 * chunk * 2
        out += len(resampler.push(samples[at : at + chunk * 2])) // 2
        held = max(held, (n + 1) * chunk / rate_in - out / rate_out)
    assert held < 0.002
    assert out + len(resampler.flush()) // 2 == 60 * rate_out


@pytest.mark.parametrize("pair", PAIRS)
def test_a_tone_stays_itself_and_where_it_was(pair: tuple[int, int]) -> None:
    rate_in, rate_out = pair
    tone = np.sin(2 * np.pi * 1000 * np.arange(rate_in) / rate_in) * 16000
    got = values(whole(pair, np.round(tone).astype("<i2").tobytes()))
    wanted = np.sin(2 * np.pi * 1000 * np.arange(rate_out) / rate_out) * 16000
    middle = slice(rate_out // 10, -rate_out // 10)
    error = got[middle] - wanted[middle]
    assert np.linalg.norm(error) < 1e-3 * np.linalg.norm(wanted[middle])


def test_after_a_flush_another_stream_begins() -> None:
    resampler = Resampler(44100, 24000)
    first = resampler.push(noise(44100, 0.1)) + resampler.flush()
    assert resampler.push(noise(44100, 0.1)) + resampler.flush() == first
    assert resampler.flush() == b""


@pytest.mark.parametrize("pair", [(0, 24000), (24000, -1)])
def test_refuses_rates_that_are_none(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="above 0 Hz"):
        Resampler(*pair)
