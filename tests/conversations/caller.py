"""A caller of a real transceiver: speaks in real time, and knows when each thing came.

Moments are seconds of the monotonic clock. Those of arrivals are the kernel's, so that a busy
caller delays none; an event has the moment of the datagram that brought it.
"""

import asyncio
import contextlib
import json
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx
from aiortc import RTCCertificate

from relayctl.wire.address import Address, render
from relayctl.wire.packet_class import PacketClass, classify
from tests.clients.lean_call import LeanCall, Options
from tests.conversations.mouth import Mouth
from tests.conversations.service import HOST, Service
from tests.figures.measurement import MeasurementError
from tests.lab.ear import Row
from transceiver import rtp
from transceiver.events import Event
from transceiver.rtcp import Reporter
from transceiver.rtp import Reception

PACKET_S = 0.02
REPORT_S = 1.0  # between receiver reports

_SO_TIMESTAMPNS = 35  # asm-generic/socket.h; the ancillary message has the same number
_TIMESPEC = struct.Struct("qq")
_PATIENCE_S = 10.0
_POLL_S = 0.005


class Sent(NamedTuple):
    at: float
    speech: bool


class Came(NamedTuple):
    at: float
    timestamp: int  # 48 kHz ticks
    marker: bool
    payload: bytes


class Told(NamedTuple):
    at: float
    event: Event


@dataclass(frozen=True)
class Wishes:
    """What a caller asks for. `way_s`: seconds by which each datagram is late, either way."""

    session: Mapping[str, Any]
    dialect: str = "realtime"
    way_s: float = 0.0


class Caller(LeanCall):
    """`run` beside everything else; then speak and wait."""

    def __init__(
        self, options: Options, http: httpx.AsyncClient, vip: Address, wishes: Wishes
    ) -> None:
        super().__init__(options, http)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._vip = vip
        self._wishes = wishes
        self._api = http
        self._wall = time.time() - time.monotonic()  # of the kernel's stamps
        self._arrived = 0.0
        self._dtls_arrived = 0.0
        self._sequence = 1000
        self._first_reports: tuple[Reporter, dict[int, Reception]] | None = None
        self.mouth = Mouth()
        self.sent: list[Sent] = []
        self.came: list[Came] = []
        self.told: list[Told] = []

    async def exchange(self, url: str, offer: str) -> tuple[str, str]:
        """By the control API."""
        body = {
            "offer": offer,
            "vips": [render(self._vip)],
            "dialect": self._wishes.dialect,
            **({"session": self._wishes.session} if self._wishes.session else {}),
        }
        response = await self._api.post(url, json=body)
        if response.is_error:
            raise MeasurementError(f"POST /v1/calls: {response.status_code} {response.text[:200]}")
        made = response.json()
        return made["answer"], f"{url}/{made['id']}"

    async def run(self) -> None:
        """Send a packet every 20 ms, for ever."""
        due = time.monotonic()
        reported = due
        while True:
            due += PACKET_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            now = time.monotonic()
            if self.state == "connected" and not self.muted:
                self._speak(now)
                if now - reported > REPORT_S:
                    reported = now
                    self._report(now)
            self.keep_alive(now)

    @property
    def call_id(self) -> str:
        return str(self.report()["id"])

    def say(self, samples: Row) -> None:
        """Begin with the next packet, or after what is being said."""
        self.mouth.say(samples)

    def tell(self, event: Mapping[str, Any]) -> None:
        """Send an event."""
        assert self.channel is not None
        self.channel.send(json.dumps(event))

    async def until(self, kind: str, *, since: float = 0.0, within: float = _PATIENCE_S) -> Told:
        """The first event of this kind that came after `since`. Raises `MeasurementError`."""

        def found() -> Told | None:
            return next(
                (each for each in self.told if each.at > since and each.event["type"] == kind), None
            )

        await self.happens(lambda: found() is not None, f"no {kind} came", within)
        told = found()
        assert told is not None
        return told

    async def happens(
        self, what: Callable[[], bool], otherwise: str, within: float = _PATIENCE_S
    ) -> None:
        """Raises `MeasurementError`."""
        deadline = time.monotonic() + within
        while not what():
            if time.monotonic() > deadline:
                recent = " ".join(each.event["type"] for each in self.told[-8:])
                raise MeasurementError(f"{otherwise} in {within:g} s; the last events: {recent}")
            await asyncio.sleep(_POLL_S)

    def events(self, kind: str) -> list[Told]:
        return [each for each in self.told if each.event["type"] == kind]

    def send(self, data: bytes, to: Address | None = None) -> None:
        if self._wishes.way_s:
            asyncio.get_running_loop().call_later(self._wishes.way_s, super().send, data, to)
        else:
            super().send(data, to)

    def read(self, sock: socket.socket) -> tuple[bytes, Address]:
        data, ancillary, _, source = sock.recvmsg(2048, socket.CMSG_SPACE(_TIMESPEC.size))
        self._arrived = time.monotonic()
        for level, kind, value in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                seconds, nanoseconds = _TIMESPEC.unpack(value)
                self._arrived = seconds + nanoseconds * 1e-9 - self._wall
        return data, source

    def _take(self, data: bytes, source: Address, now: float) -> None:
        way_s = self._wishes.way_s
        if way_s:
            at = self._arrived + way_s
            asyncio.get_running_loop().call_later(way_s, self._take_at, data, source, now, at)
        else:
            self._take_at(data, source, now, self._arrived)

    def _take_at(self, data: bytes, source: Address, now: float, at: float) -> None:
        self._arrived = at
        if classify(data) is PacketClass.DTLS:
            self._dtls_arrived = at
        super()._take(data, source, now)

    def hear(self, packet: bytes, now: float) -> None:
        plain = rtp.parse(packet)
        self.came.append(Came(self._arrived, plain.timestamp, plain.marker, plain.payload))
        if self._first_reports is None:
            ours = Reporter(self.speech.ssrc, "caller")
            self._first_reports = ours, {plain.ssrc: Reception()}
        _, sources = self._first_reports
        if plain.ssrc in sources:
            sources[plain.ssrc].add(plain.sequence, plain.timestamp, now)

    def hear_report(self, packet: bytes) -> None:
        if self._first_reports is not None:
            with contextlib.suppress(ValueError):
                self._first_reports[0].learn(packet, time.monotonic())

    def hear_message(self, message: str | bytes) -> None:
        self.told.append(Told(self._dtls_arrived, json.loads(message)))

    def _speak(self, now: float) -> None:
        speech = self.mouth.speaking
        self._sequence = (self._sequence + 1) & 0xFFFF
        timestamp = len(self.sent) * rtp.FRAME & 0xFFFFFFFF
        packet = rtp.Packet(
            self.speech.payload_type,
            self._sequence,
            timestamp,
            self.speech.ssrc,
            self.mouth.packet(),
        )
        protected = self.protect(rtp.build(packet))
        self.sent.append(Sent(time.monotonic(), speech))
        self.send(protected)

    def _report(self, now: float) -> None:
        """A receiver report: from it the server knows the round trip."""
        if self._first_reports is not None:
            reporter, sources = self._first_reports
            self.send(self._dtls._tx_srtp.protect_rtcp(reporter.report(sources, now)))


@contextlib.asynccontextmanager
async def calling(service: Service, wishes: Sequence[Wishes]) -> AsyncIterator[list[Caller]]:
    """Callers who are connected, and talk. Raises `MeasurementError`."""
    options = Options(
        service.calls_url, HOST, (b"",), RTCCertificate.generateCertificate(), channel=True
    )
    async with httpx.AsyncClient(trust_env=False) as http:
        callers = [Caller(options, http, service.address, each) for each in wishes]
        clocks = [asyncio.create_task(caller.run()) for caller in callers]
        try:
            await asyncio.gather(*(caller.start() for caller in callers))
            yield callers
        finally:
            for clock in clocks:
                clock.cancel()
            await asyncio.gather(*(caller.close() for caller in callers))
