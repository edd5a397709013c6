"""Ten minutes of the long talk hold; and play-outs that would not are noticed."""

from typing import Any

import pytest

from tests.audio import long_talk
from tests.figures.measurement import MeasurementError
from transceiver.audio.downlink import Downlink, Frame


def test_ten_minutes_are_on_time_and_whole() -> None:
    found = long_talk.measure(600, seed=2)
    (target,) = long_talk.TARGETS
    assert target.met(found.values[target.name])
    assert found.detail["talks"] > 20
    assert found.detail["slots_skipped"] > 5


class Ticking(Downlink):
    """Its RTP time counts frames and not slots: each one that is skipped puts it behind."""

    frames = 0

    def slot(self, n: int, now: float) -> Frame:
        frame = super().slot(n, now)
        self.frames += 1
        return frame._replace(timestamp=(long_talk.FIRST_TIMESTAMP + self.frames * 960) % 2**32)


class Doubling(Downlink):
    """Sends a frame again now and then."""

    last: bytes | None = None
    frames = 0

    def slot(self, n: int, now: float) -> Frame:
        frame = super().slot(n, now)
        self.frames += 1
        again = frame.samples is not None and self.last is not None and self.frames % 500 == 0
        self.last, before = frame.samples, self.last
        return frame._replace(samples=before) if again else frame


class Forgetting(Downlink):
    """Loses a chunk in a hundred."""

    chunks = 0

    def play(self, samples: bytes, now: float) -> bool:
        self.chunks += 1
        return self.chunks % 100 == 0 or super().play(samples, now)


def test_a_time_that_counts_frames_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_talk, "Downlink", Ticking)
    assert _time_error(long_talk.measure(600, seed=2)) > 100


@pytest.mark.parametrize("kind", [Doubling, Forgetting])
def test_samples_twice_or_never_are_no_figure(
    monkeypatch: pytest.MonkeyPatch, kind: type[Downlink]
) -> None:
    monkeypatch.setattr(long_talk, "Downlink", kind)
    with pytest.raises(MeasurementError, match="samples"):
        long_talk.measure(600, seed=2)


def _time_error(found: Any) -> float:
    return float(found.values["long_talk_time_error"])
