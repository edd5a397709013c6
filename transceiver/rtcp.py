"""RTCP reports of one audio call (RFC 3550 section 6.4): what we tell and what we learn.

Pure: `now` is any monotonic clock in seconds. The wire format is aiortc's; SRTCP is `dtls.py`.
"""

import struct
from dataclasses import dataclass

from aiortc import rtp as wire

from transceiver.rtp import CLOCK_RATE, Reception

CNAME = 1  # SDES item, RFC 3550 section 6.5.1
MAX_REPORTS = 31  # in one packet, by the width of its count field

_NTP_UNIT = 65536  # of the middle 32 bits of an NTP timestamp, per second


@dataclass(frozen=True, slots=True)
class Learned:
    """What a compound packet of the peer says about us."""

    rtt: float | None = None  # seconds, RFC 3550 section 6.4.1
    fraction_lost: float | None = None  # of our packets, since the peer's last report
    bye: bool = False


class Reporter:
    """Makes and reads the reports of one call."""

    def __init__(self, ssrc: int, cname: str) -> None:
        self._ssrc = ssrc
        self._cname = cname.encode()
        self._heard: dict[int, tuple[int, float]] = {}  # source -> (last report's middle NTP, when)
        self._told: dict[int, tuple[int, int]] = {}  # source -> (expected, received) at last report
        self.packets = 0
        self.octets = 0
        self._timestamp: tuple[int, float] | None = None  # last sent, and when

    def sent(self, octets: int, timestamp: int, now: float) -> None:
        """Count an RTP packet of ours with `octets` bytes of payload."""
        self.packets += 1
        self.octets += octets
        self._timestamp = timestamp, now

    def report(self, sources: dict[int, Reception], now: float) -> bytes:
        """A compound packet: sender report, or receiver report while we sent nothing; CNAME."""
        blocks = [
            self._block(ssrc, reception, now)
            for ssrc, reception in list(sources.items())[:MAX_REPORTS]
        ]
        first: wire.RtcpSrPacket | wire.RtcpRrPacket
        if self._timestamp is None:
            first = wire.RtcpRrPacket(self._ssrc, blocks)
        else:
            first = wire.RtcpSrPacket(self._ssrc, self._sender(self._timestamp, now), blocks)
        items = [wire.RtcpSourceInfo(self._ssrc, [(CNAME, self._cname)])]
        return bytes(first) + bytes(wire.RtcpSdesPacket(items))

    def bye(self) -> bytes:
        """An empty receiver report and BYE: compound as section 6.1 wants it."""
        return bytes(wire.RtcpRrPacket(self._ssrc)) + bytes(wire.RtcpByePacket([self._ssrc]))

    def learn(self, compound: bytes, now: float) -> Learned:
        """Read the peer's reports. Raises `ValueError`, and nothing else."""
        try:
            packets = wire.RtcpPacket.parse(compound)
        except (struct.error, IndexError) as error:
            raise ValueError(f"RTCP: {error}") from None
        rtt = lost = None
        bye = False
        for packet in packets:
            if isinstance(packet, wire.RtcpByePacket):
                bye = True
            if not isinstance(packet, wire.RtcpSrPacket | wire.RtcpRrPacket):
                continue
            if isinstance(packet, wire.RtcpSrPacket) and (
                packet.ssrc in self._heard or len(self._heard) < MAX_REPORTS
            ):
                self._heard[packet.ssrc] = (
                    packet.sender_info.ntp_timestamp >> 16 & 0xFFFFFFFF,
                    now,
                )
            for block in packet.reports:
                if block.ssrc == self._ssrc:
                    lost = block.fraction_lost / 256
                    rtt = _round_trip(block, now) if rtt is None else rtt
        return Learned(rtt, lost, bye)

    def _sender(self, last: tuple[int, float], now: float) -> wire.RtcpSenderInfo:
        timestamp, when = last
        elapsed = round((now - when) * CLOCK_RATE)
        return wire.RtcpSenderInfo(
            ntp_timestamp=_ntp(now),
            rtp_timestamp=(timestamp + elapsed) & 0xFFFFFFFF,
            packet_count=self.packets & 0xFFFFFFFF,
            octet_count=self.octets & 0xFFFFFFFF,
        )

    def _block(self, ssrc: int, reception: Reception, now: float) -> wire.RtcpReceiverInfo:
        expected, received = reception.expected, reception.received
        before_expected, before_received = self._told.get(ssrc, (0, 0))
        self._told[ssrc] = expected, received
        interval = expected - before_expected
        lost = interval - (received - before_received)
        heard, when = self._heard.get(ssrc, (0, now))
        return wire.RtcpReceiverInfo(
            ssrc=ssrc,
            fraction_lost=min(255, (lost << 8) // interval) if interval > 0 and lost > 0 else 0,
            packets_lost=wire.clamp_packets_lost(reception.lost),
            highest_sequence=reception.highest,
            jitter=int(reception.jitter) & 0xFFFFFFFF,
            lsr=heard,
            dlsr=min(0xFFFFFFFF, round((now - when) * _NTP_UNIT)) if heard else 0,
        )


def _round_trip(block: wire.RtcpReceiverInfo, now: float) -> float | None:
    if not block.lsr:
        return None
    units = ((_ntp(now) >> 16) - block.lsr - block.dlsr) & 0xFFFFFFFF
    return None if units >= 1 << 31 else units / _NTP_UNIT  # "negative": clocks tick unevenly


def _ntp(now: float) -> int:
    """An NTP timestamp whose epoch is that of `now`; receivers use differences only."""
    return int(now * (1 << 32)) & 0xFFFFFFFFFFFFFFFF
