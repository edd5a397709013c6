import numpy as np

from tests.conversations.clips import COUNT, LONGEST_S, RATE, SHORTEST_S, clips, phrases, read
from tests.lab.speech import OTHER, SPOKEN


def loudness_db(samples: "np.ndarray[tuple[int, ...], np.dtype[np.int16]]") -> float:
    return float(10 * np.log10(np.mean((samples / 32768) ** 2) + 1e-12))


def test_twenty_clips_with_pauses_of_all_lengths() -> None:
    assert len(clips()) == COUNT == len({clip.name for clip in clips()})
    lengths = [pause.end - pause.start for clip in clips() for pause in clip.pauses]
    assert len(lengths) > COUNT
    assert abs(min(lengths) - SHORTEST_S) < 0.001
    assert abs(max(lengths) - LONGEST_S) < 0.001


def test_where_a_clip_says_speech_there_is_speech_and_elsewhere_the_room() -> None:
    for clip in clips():
        samples = clip.samples
        for span in clip.speech:
            start, end = round(span.start * RATE), round(span.end * RATE)
            assert loudness_db(samples[start:end]) > -35
            assert loudness_db(samples[start : start + RATE // 50]) > -62
            assert loudness_db(samples[end - RATE // 50 : end]) > -62
            samples = samples.copy()
            samples[start:end] = 0
        loudest = max(
            loudness_db(samples[at : at + RATE // 100])
            for at in range(0, len(samples), RATE // 100)
        )
        assert loudest < -50


def test_the_room_is_never_digitally_silent() -> None:
    for clip in clips():
        still = np.flatnonzero(clip.samples)
        assert np.max(np.diff(still)) < RATE // 50


def test_phrases_are_cut_where_it_is_quiet() -> None:
    for path in (SPOKEN, OTHER):
        assert len(phrases(path)) >= 6
        assert all(0.4 <= len(phrase) / RATE <= 3.6 for phrase in phrases(path))
        assert sum(map(len, phrases(path))) < len(read(path))
