"""The speaking side of one call whose backend gives samples: queue, encoder, place at the pacer."""

from collections.abc import Callable

from transceiver.audio.downlink import Downlink
from transceiver.audio.pacer import Pacer
from transceiver.audio.voice import Voice


class Speaker:
    """Sends a packet in each slot between `resume` and `pause`; begins paused.

    `send` takes an Opus packet, its timestamp and its marker; `crash` ends the call; `on_frame`
    is told the time after each packet with sound of the downlink in it.
    """

    def __init__(
        self,
        rate: int,
        first_timestamp: int,
        pacer: Pacer,
        send: Callable[[bytes, int, bool], None],
        crash: Callable[[], None],
        on_frame: Callable[[float], None] | None = None,
    ) -> None:
        self.downlink = Downlink(rate, first_timestamp)
        self.voice = Voice(rate)
        self.crash = crash
        self._pacer = pacer
        self._send = send
        self._on_frame = on_frame
        self._phase: int | None = None
        self._slept = True

    def resume(self) -> None:
        """Have slots: the same phase as before, so that the RTP time is exact."""
        self._slept = True
        self._phase = self._pacer.join(self, self._phase)

    def pause(self) -> None:
        """Have none; what is queued waits. Also the end."""
        self._pacer.leave(self)

    def slot(self, n: int, now: float) -> None:
        """For the pacer."""
        if self._slept:
            self._slept = False
            self.downlink.sleep(n - 1)
        before = self.downlink.gone
        samples, timestamp, marker = self.downlink.slot(n, now)
        payload = self.voice.silence() if samples is None else self.voice.encode(samples)
        self._send(payload, timestamp, marker)
        if self._on_frame is not None and self.downlink.gone != before:
            self._on_frame(now)

    def statistics(self) -> dict[str, object]:
        downlink, drift = self.downlink, self.downlink.drift
        return {
            "queued_ms": round(downlink.queued_s * 1000),
            "cushion_ms": round(downlink.cushion * 1000),
            "underruns": downlink.underruns,
            "slots_skipped": downlink.skipped,
            "refused_samples": downlink.refused,
            "trimmed_samples": downlink.trimmed,
            "drift_ppm": None if drift is None else round(drift * 1e6),
            "fec": self.voice.fec,
        }
