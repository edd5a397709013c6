"""Another rate for backends that run at one Opus has not: mono 16-bit samples, by libswresample.

Whatever the pieces in which samples come, the same samples leave; of n seconds exactly n seconds.
It holds back half its filter, 16 samples of the lower rate: at most 2 ms from 8 kHz on.
"""

import av


class Resampler:
    """One direction of one call."""

    def __init__(self, rate_in: int, rate_out: int) -> None:
        """Rates in Hz. Raises `ValueError`."""
        if rate_in <= 0 or rate_out <= 0:
            raise ValueError(f"rates {rate_in} and {rate_out}: both must be above 0 Hz")
        self.rate_in = rate_in
        self.rate_out = rate_out
        self._resampler = self._make()

    def push(self, samples: bytes) -> bytes:
        """What of the new rate is complete after `samples`; often less than all."""
        if not samples:
            return b""
        frame = av.AudioFrame("s16", "mono", len(samples) // 2)
        frame.sample_rate = self.rate_in
        frame.planes[0].update(samples)
        return self._run(frame)

    def flush(self) -> bytes:
        """The samples held back; the next `push` begins another stream."""
        rest = self._run(None)
        self._resampler = self._make()
        return rest

    def _make(self) -> av.AudioResampler:
        return av.AudioResampler("s16", "mono", self.rate_out)

    def _run(self, frame: av.AudioFrame | None) -> bytes:
        return b"".join(
            bytes(out.planes[0])[: out.samples * 2] for out in self._resampler.resample(frame)
        )
