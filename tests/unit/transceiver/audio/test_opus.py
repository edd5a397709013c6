import contextlib
import math
import random
from array import array
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opuslib_next import APPLICATION_RESTRICTED_LOWDELAY as LOW_DELAY
from opuslib_next import APPLICATION_VOIP as VOIP

from tests.unit.transceiver.audio import spoken
from transceiver.audio.opus import RATES, CodecError, Decoder, Encoder, carries_fec

RATE = 24000
FRAME = RATE // 50


def voice(seconds: float, rate: int = RATE) -> bytes:
    """A gliding tone with overtones: speech-like enough for SILK and its FEC."""
    dice = random.Random(7)
    samples = []
    for n in range(round(seconds * rate)):
        t = n / rate
        pitch = 2 * math.pi * (140 * t + 20 * math.sin(3 * t))
        level = 0.6 + 0.4 * math.sin(2 * math.pi * 3 * t)
        tone = sum(math.sin(k * pitch) / k for k in range(1, 8))
        samples.append(int(6000 * level * tone + dice.gauss(0, 100)))
    return array("h", samples).tobytes()


def frames(samples: bytes, size: int = FRAME) -> list[bytes]:
    return [samples[at : at + size * 2] for at in range(0, len(samples) - size * 2 + 1, size * 2)]


def values(samples: bytes) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.frombuffer(samples, np.int16).astype(np.float64)


@pytest.mark.parametrize("rate", RATES)
def test_what_goes_in_comes_out(rate: int) -> None:
    encoder, decoder = Encoder(rate), Decoder(rate)
    sound = voice(1.0, rate)
    out = b"".join(decoder.decode(encoder.encode(f)) for f in frames(sound, rate // 50))
    assert len(out) == len(sound)
    a, b = values(sound), values(out)
    best = max(
        float(np.corrcoef(a[: len(a) - lag], b[lag:])[0, 1]) for lag in range(0, rate // 50, 4)
    )
    assert best > 0.8


@pytest.mark.parametrize("ms", [10, 20, 40, 60])
def test_takes_and_gives_packets_of_any_usual_length(ms: int) -> None:
    size = RATE * ms // 1000
    packet = Encoder(RATE).encode(voice(0.06)[: size * 2])
    assert len(Decoder(RATE).decode(packet)) == size * 2


def test_about_32_kbit_per_second_and_no_discontinuous_transmission() -> None:
    encoder = Encoder(RATE)
    sizes = [len(encoder.encode(f)) for f in frames(voice(2.0))]
    assert 60 < sum(sizes) / len(sizes) < 100
    silence = [len(encoder.encode(bytes(FRAME * 2))) for _ in range(50)]
    assert min(silence) > 2  # 1 or 2 bytes would be DTX


def error_of(repair: str) -> float:
    """Distance from the lossless decode on lost frames, silence being 1."""
    encoder = Encoder(RATE, fec=True)
    packets = [encoder.encode(f) for f in frames(voice(4.0))]
    whole, holey = Decoder(RATE), Decoder(RATE)
    wanted, got, silent = [], [], []
    for n, packet in enumerate(packets):
        want = whole.decode(packet)
        if n % 10 == 5:
            fixed = (
                holey.recover(packets[n + 1], FRAME) if repair == "fec" else holey.conceal(FRAME)
            )
            wanted.append(values(want))
            got.append(values(fixed))
            silent.append(np.zeros(FRAME))
        else:
            holey.decode(packet)
    distance = float(np.linalg.norm(np.concatenate(wanted) - np.concatenate(got)))
    return distance / float(np.linalg.norm(np.concatenate(wanted) - np.concatenate(silent)))


def test_fec_repairs_better_than_concealment() -> None:
    fec, concealed = error_of("fec"), error_of("conceal")
    assert fec < 0.8
    assert fec < concealed


def test_concealment_is_as_long_as_asked() -> None:
    decoder = Decoder(RATE)
    decoder.decode(Encoder(RATE).encode(voice(0.02)))
    assert len(decoder.conceal(FRAME)) == FRAME * 2


@pytest.mark.parametrize(
    ("packets", "frame_ms"),
    [
        pytest.param(spoken.packets(fec=True), 20, id="hybrid"),
        pytest.param(spoken.packets(fec=False), 20, id="without"),
        pytest.param(spoken.packets(ms=10, fec=True), 10, id="10_ms"),
        pytest.param(spoken.packets(ms=60, fec=True), 20, id="3_frames"),
        pytest.param(spoken.of_libopus(20, VOIP, fec=True, wide=True), 20, id="silk"),
        pytest.param(spoken.of_libopus(40, VOIP, fec=True, wide=True), 40, id="silk_40_ms"),
        pytest.param(spoken.of_libopus(60, VOIP, fec=True, wide=True), 60, id="silk_60_ms"),
        pytest.param(spoken.of_libopus(120, VOIP, fec=True, wide=True), 60, id="2_frames"),
        pytest.param(spoken.of_libopus(20, VOIP, 2, fec=True), 20, id="stereo"),
        pytest.param(spoken.of_libopus(60, VOIP, 2, fec=True, wide=True), 60, id="stereo_60_ms"),
        pytest.param(spoken.of_libopus(20, LOW_DELAY), 20, id="celt"),
    ],
)
def test_fec_data_is_said_to_be_where_libopus_does_more_than_conceal(
    packets: tuple[bytes, ...], frame_ms: int
) -> None:
    size = RATE * frame_ms // 1000
    for before, following in pairwise(packets[:100]):
        if before[0] >> 2 != following[0] >> 2:
            continue  # libopus conceals in the mode and the channels of the packet it is given
        concealing, recovering = Decoder(RATE), Decoder(RATE)
        concealing.decode(before)
        recovering.decode(before)
        has_fec = carries_fec(following)
        assert recovering.recoverable(following) == has_fec * size
        assert (recovering.recover(following, size) != concealing.conceal(size)) == has_fec


def test_fec_data_is_where_it_should_be() -> None:
    for ms in (10, 20, 40, 60):
        packets = spoken.packets(ms=ms, fec=True)
        assert sum(map(carries_fec, packets)) > len(packets) / 2
    assert any(map(carries_fec, spoken.of_libopus(60, VOIP, 2, fec=True, wide=True)))
    assert not any(map(carries_fec, spoken.packets(fec=False)))


def test_nothing_is_recoverable_behind_packets_without_silk() -> None:
    decoder = Decoder(RATE)
    following = next(filter(carries_fec, spoken.packets(fec=True)))
    assert decoder.recoverable(following) == 0
    decoder.decode(following)
    assert decoder.recoverable(following) == FRAME
    decoder.decode(spoken.of_libopus(20, LOW_DELAY)[0])
    assert decoder.recoverable(following) == 0


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_what_is_recoverable_is_recovered(following: bytes) -> None:
    decoder = Decoder(RATE)
    decoder.decode(spoken.packets()[60])
    size = decoder.recoverable(following)
    if size:
        assert len(decoder.recover(following, size)) == size * 2


def test_a_reset_decoder_is_a_new_one() -> None:
    used, new = Decoder(RATE), Decoder(RATE)
    for packet in spoken.packets()[:10]:
        used.decode(packet)
    used.reset()
    for packet in spoken.packets()[60:65]:
        assert used.decode(packet) == new.decode(packet)


def test_fec_can_be_switched() -> None:
    encoder = Encoder(RATE)
    assert not encoder.fec
    encoder.fec = True
    assert encoder.fec


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_decode_raises_only_codec_error(packet: bytes) -> None:
    with contextlib.suppress(CodecError):
        assert len(Decoder(RATE).decode(packet)) % 2 == 0


@pytest.mark.parametrize("size", [0, 1, 479, 481])
def test_odd_lengths_are_refused(size: int) -> None:
    with pytest.raises(CodecError):
        Encoder(RATE).encode(bytes(size * 2))


def test_a_rate_that_opus_has_not_is_refused() -> None:
    with pytest.raises(CodecError, match="44100"):
        Encoder(44100)
    with pytest.raises(CodecError, match="44100"):
        Decoder(44100)
