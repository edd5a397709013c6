from transceiver import codec_speed


def test_measures_a_second_of_audio() -> None:
    assert 0 < codec_speed.measure() < 1  # else no core of today could carry one call


def test_the_signal_is_no_silence() -> None:
    packets = codec_speed._syllable()
    assert len(packets) * 5 == codec_speed.PACKETS
    assert min(map(len, packets[2:-2])) > 50
