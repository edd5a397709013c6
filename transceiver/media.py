"""The audio of one call between SRTP and its backend: RTP in and out, counts and reports.

`transmit` and `transmit_rtcp` take plain packets; what protects and sends them is `stream.py`. A
backend that speaks samples gets an encoder and a place at the pacer, which calls `slot`.
"""

import math
from collections.abc import Callable

from transceiver import rtp
from transceiver.audio.pacer import Pacer
from transceiver.backends.base import Backend
from transceiver.counts import Counts
from transceiver.rtcp import Reporter
from transceiver.rtp import CLOCK_RATE, Packet, Reception, header
from transceiver.speaker import Speaker

MAX_SOURCES = 8  # SSRCs of one client: each costs SRTP state
FIRST_REPORT_S = 1.0  # after the media began
REPORT_EVERY_S = 3.0


Received = tuple[Packet | None, bool, int | None]
"""An authentic packet of the client, None for RTCP; whether it is ahead of all before it; its SSRC
if it is the first packet of it. A bare tuple: there is one for each packet."""


class Media:
    """`timer` has work at `deadline`. `sends`: False while the client does not listen."""

    def __init__(
        self,
        *,
        ssrc: int,
        payload_type: int,
        cname: str,
        first_sequence: int,
        first_timestamp: int,
        sends: bool,
        backend: Backend,
        pacer: Pacer,
        counts: Counts,
        clock: Callable[[], float],
        transmit: Callable[[bytes], None],
        transmit_rtcp: Callable[[bytes], None],
        crash: Callable[[], None],
    ) -> None:
        self._ssrc = ssrc
        self._payload_type = payload_type
        self._sequence = first_sequence
        self._first_timestamp = first_timestamp
        self._counts = counts
        self._clock = clock
        self._transmit = transmit
        self._transmit_rtcp = transmit_rtcp
        self._reporter = Reporter(ssrc, cname)
        self._sources: dict[int, Reception] = {}
        self._source: Reception | None = None  # the one that came last
        self._report_due = clock() + FIRST_REPORT_S
        self.sends = sends
        self._pacer = pacer
        self._crash = crash
        self._speaker: Speaker | None = None
        self._paused = False
        self._last: dict[str, object] | None = None  # statistics of the closed call
        self.packets_up = 0
        self.bytes_up = 0  # of payload
        self.rtt: float | None = None  # seconds, by the client's last report
        self.fraction_lost: float | None = None  # of our packets, by the client's last report
        self.backend = backend
        backend.begin(self, clock())

    @property
    def deadline(self) -> float:
        """When `timer` has work; math.inf = never."""
        if self._last is not None:
            return math.inf
        return min(math.inf if self._paused else self._report_due, self.backend.deadline)

    @property
    def packets_down(self) -> int:
        return self._reporter.packets

    @property
    def bytes_down(self) -> int:
        return self._reporter.octets

    @property
    def lost(self) -> int:
        """RTP packets of the client that never came."""
        return sum(max(0, source.lost) for source in self._sources.values())

    def admits(self, ssrc: int) -> bool:
        """Whether a packet of this source may become SRTP state of ours."""
        return ssrc in self._sources or len(self._sources) < MAX_SOURCES

    def count(self, plain: bytes, now: float) -> Received:
        """Read and count an authentic RTP packet; `deliver` it afterwards."""
        try:
            packet = rtp.parse(plain)
        except rtp.RtpError as error:
            self._counts.drop(error.reason)
            return None, False, None
        source = self._source = self._sources.get(packet.ssrc)
        is_new = source is None
        if source is None:
            source = self._source = self._sources[packet.ssrc] = Reception()
        newest = source.add(packet.sequence, packet.timestamp, now)
        size = len(packet.payload)
        self.packets_up += 1
        self.bytes_up += size
        self._counts.packets_up += 1
        self._counts.bytes_up += size
        return packet, newest, packet.ssrc if is_new else None

    def deliver(self, packet: Packet, newest: bool, now: float) -> None:
        """Let the backend have a packet."""
        if packet.payload_type != self._payload_type:
            self._counts.drop("wrong_payload_type")
            return
        self.backend.receive(packet, newest, now)

    def receive_rtcp(self, plain: bytes, now: float) -> None:
        try:
            learned = self._reporter.learn(plain, now)
        except ValueError:
            self._counts.drop("bad_rtcp")
            return
        if learned.rtt is not None:
            self.rtt = learned.rtt
        if learned.fraction_lost is not None:
            self.fraction_lost = learned.fraction_lost
            self.backend.loss(learned.fraction_lost, now)
            if self._speaker is not None:
                self._speaker.voice.loss(learned.fraction_lost, now)

    def send(self, payload: bytes, timestamp: int, marker: bool) -> None:
        """For the backend, see `Outlet`."""
        if self._paused or not self.sends:
            return
        sequence = self._sequence
        self._sequence = (sequence + 1) & 0xFFFF
        self._transmit(
            header(self._payload_type, sequence, timestamp, self._ssrc, marker) + payload
        )
        size = len(payload)
        self._reporter.sent(size, timestamp, self._clock())
        self._counts.packets_down += 1
        self._counts.bytes_down += size

    def open(self, rate: int, on_frame: Callable[[float], None] | None = None) -> None:
        """For the backend, see `Outlet`."""
        self._speaker = Speaker(
            rate, self._first_timestamp, self._pacer, self.send, self._crash, on_frame
        )
        if not self._paused:
            self._speaker.resume()

    def play(self, samples: bytes) -> bool:
        """For the backend, see `Outlet`."""
        return self._speaker is not None and self._speaker.downlink.play(samples, self._clock())

    def flush(self) -> int:
        """For the backend, see `Outlet`."""
        return 0 if self._speaker is None else self._speaker.downlink.flush()

    @property
    def sent(self) -> int:
        """For the backend, see `Outlet`."""
        return 0 if self._speaker is None else self._speaker.downlink.gone

    def timer(self, now: float) -> None:
        if now >= self._report_due and not self._paused:
            self._report_due = now + REPORT_EVERY_S
            self._transmit_rtcp(self._reporter.report(self._sources, now))
        if now >= self.backend.deadline:
            self.backend.timer(now)

    def pause(self) -> None:
        self._paused = True
        if self._speaker is not None:
            self._speaker.pause()
        self.backend.pause()

    def resume(self) -> None:
        self._paused = False
        if self._speaker is not None:
            self._speaker.resume()
        self.backend.resume()

    def close(self) -> None:
        """Say goodbye in RTCP; the backend is the call's to close. May be called twice."""
        if self._last is not None:
            return
        if self._speaker is not None:
            self._speaker.pause()  # whatever happens then, no slot is ours
        self._last = self.statistics()
        self._transmit_rtcp(self._reporter.bye())
        self._counts.lost += self.lost
        self._counts.uplink.update(self.backend.statistics())
        self._speaker = None
        self._paused = True

    def statistics(self) -> dict[str, object]:
        """All that is counted of this call, for people; None is not known."""
        if self._last is not None:
            return self._last
        spoken = {} if self._speaker is None else self._speaker.statistics()
        return {
            "packets_up": self.packets_up,
            "packets_down": self.packets_down,
            "bytes_up": self.bytes_up,
            "bytes_down": self.bytes_down,
            "lost": self.lost,
            "jitter_ms": round(self._jitter * 1000 / CLOCK_RATE, 1),
            "rtt_ms": None if self.rtt is None else round(self.rtt * 1000, 1),
            "fraction_lost": self.fraction_lost,
            **self.backend.statistics(),
            **spoken,
        }

    @property
    def _jitter(self) -> float:
        """Ticks; of the source that came last."""
        return self._source.jitter if self._source is not None else 0.0
