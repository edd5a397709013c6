"""The audio of one call between SRTP and its backend: RTP in and out, counts and reports.

`transmit` and `transmit_rtcp` take plain packets; what protects and sends them is `call.py`.
"""

from collections.abc import Callable
from typing import NamedTuple

from transceiver import rtp
from transceiver.backends.base import Backend, BackendFactory
from transceiver.counts import Counts
from transceiver.rtcp import Reporter
from transceiver.rtp import Packet, Reception

MAX_SOURCES = 8  # SSRCs of one client: each costs SRTP state
FIRST_REPORT_S = 1.0  # after the media began
REPORT_EVERY_S = 3.0


class Received(NamedTuple):
    """An authentic packet of the client; `packet` is None for RTCP."""

    packet: Packet | None
    newest: bool  # ahead of all before it
    new_source: int | None = None  # its SSRC, at the first packet of it


class Media:
    def __init__(
        self,
        *,
        ssrc: int,
        payload_type: int,
        cname: str,
        first_sequence: int,
        sends: bool,
        make_backend: BackendFactory,
        counts: Counts,
        clock: Callable[[], float],
        transmit: Callable[[bytes], None],
        transmit_rtcp: Callable[[bytes], None],
    ) -> None:
        self._ssrc = ssrc
        self._payload_type = payload_type
        self._sequence = first_sequence
        self._counts = counts
        self._clock = clock
        self._transmit = transmit
        self._transmit_rtcp = transmit_rtcp
        self._reporter = Reporter(ssrc, cname)
        self._sources: dict[int, Reception] = {}
        self._report_due = clock() + FIRST_REPORT_S
        self._sends = sends  # else the client's direction says that it does not listen
        self._paused = False
        self.packets_up = 0
        self.bytes_up = 0  # of payload
        self.backend: Backend = make_backend(self)

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
            return Received(None, False)
        source = self._sources.get(packet.ssrc)
        is_new = source is None
        if source is None:
            source = self._sources[packet.ssrc] = Reception()
        newest = source.add(packet.sequence, packet.timestamp, now)
        size = len(packet.payload)
        self.packets_up += 1
        self.bytes_up += size
        self._counts.packets_up += 1
        self._counts.bytes_up += size
        return Received(packet, newest, packet.ssrc if is_new else None)

    def deliver(self, received: Received) -> None:
        """Let the backend have a packet."""
        packet = received.packet
        if packet is None or not packet.payload:
            return
        if packet.payload_type == self._payload_type:
            self.backend.receive(packet, received.newest)
        else:
            self._counts.drop("wrong_payload_type")

    def receive_rtcp(self, plain: bytes, now: float) -> None:
        try:
            learned = self._reporter.learn(plain, now)
        except ValueError:
            self._counts.drop("bad_rtcp")
            return
        if learned.fraction_lost is not None:
            self.backend.loss(learned.fraction_lost, now)

    def send(self, payload: bytes, timestamp: int, marker: bool) -> None:
        """For the backend, see `Outlet`."""
        if self._paused or not self._sends:
            return
        packet = Packet(self._payload_type, self._sequence, timestamp, self._ssrc, payload, marker)
        self._sequence = (self._sequence + 1) & 0xFFFF
        self._transmit(rtp.build(packet))
        self._reporter.sent(len(payload), timestamp, self._clock())
        self._counts.packets_down += 1
        self._counts.bytes_down += len(payload)

    def timer(self, now: float) -> None:
        if now >= self._report_due and not self._paused:
            self._report_due = now + REPORT_EVERY_S
            self._transmit_rtcp(self._reporter.report(self._sources, now))

    def pause(self) -> None:
        self._paused = True
        self.backend.pause()

    def resume(self) -> None:
        self._paused = False
        self.backend.resume()

    def close(self) -> None:
        """Say goodbye in RTCP; the backend ends."""
        self._transmit_rtcp(self._reporter.bye())
        self._counts.lost += self.lost
        self.backend.close()
