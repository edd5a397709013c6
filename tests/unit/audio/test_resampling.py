"""Three seconds at every pair of rates; and resamplers that would not do are noticed."""

import pytest

from tests.audio import resampling
from transceiver.audio.resampler import Resampler


@pytest.mark.parametrize("pair", resampling.PAIRS)
def test_any_chunks_give_the_same_sound_soon_and_all_of_it(pair: tuple[int, int]) -> None:
    found = resampling.judge(*pair, 3)
    assert found.chunked_to_whole <= 1e-3
    assert found.delay_ms <= 10
    assert found.length_error == 0
    assert found.error < 0.01


class Restarting(Resampler):
    """Begins anew with each chunk, as one does that keeps no state."""

    def push(self, samples: bytes) -> bytes:
        return super().push(samples) + super().flush()


class Slow(Resampler):
    """Holds 20 ms back."""

    held = b""

    def push(self, samples: bytes) -> bytes:
        made = self.held + super().push(samples)
        keep = self.rate_out // 50 * 2
        self.held = made[-keep:]
        return made[:-keep]

    def flush(self) -> bytes:
        made = self.held + super().flush()
        self.held = b""
        return made


class Shifting(Resampler):
    """Gives 12 ms of silence first, and never the last 12 ms."""

    begun = False

    def push(self, samples: bytes) -> bytes:
        made = super().push(samples)
        if not self.begun and made:
            self.begun, made = True, bytes(self.rate_out * 12 // 1000 * 2) + made
        return made

    def flush(self) -> bytes:
        return super().flush()[: -self.rate_out * 12 // 1000 * 2]


class Cutting(Resampler):
    """Drops what it holds back at the end."""

    def flush(self) -> bytes:
        super().flush()
        return b""


@pytest.mark.parametrize(
    ("kind", "field", "limit"),
    [
        pytest.param(Restarting, "chunked_to_whole", 1e-3, id="restarting"),
        pytest.param(Slow, "delay_ms", 10, id="slow"),
        pytest.param(Shifting, "delay_ms", 10, id="shifting"),
        pytest.param(Cutting, "length_error", 0, id="cutting"),
    ],
)
def test_the_judgement_notices(
    monkeypatch: pytest.MonkeyPatch, kind: type[Resampler], field: str, limit: float
) -> None:
    monkeypatch.setattr(resampling, "Resampler", kind)
    found = resampling.judge(24000, 16000, 3)
    assert abs(getattr(found, field)) > limit
