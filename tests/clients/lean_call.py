"""One call of the lean client: own ICE, aiortc's DTLS, SRTP and SCTP, speech encoded beforehand.

It decodes nothing and stays near 1 % of a core, so that one process carries dozens of calls. What
it measures it takes from RTP headers and from the order in which its payloads come back.
"""

import asyncio
import contextlib
import secrets
import socket
import string
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urljoin

import httpx
import pylibsrtp
from aiortc import (
    RTCCertificate,
    RTCDataChannel,
    RTCDataChannelParameters,
    RTCDtlsFingerprint,
    RTCDtlsParameters,
    RTCDtlsTransport,
    RTCIceTransport,
    RTCSctpCapabilities,
    RTCSctpTransport,
)

from relayctl.wire.address import Address, render
from relayctl.wire.packet_class import PacketClass, classify, is_rtcp
from tests.clients import sdp
from tests.clients.ice import Agent, Credentials
from tests.clients.speech_stream import SpeechStream

_ICE_CHARS = string.ascii_letters + string.digits + "+/"
_QUEUE = 64  # DTLS datagrams


@dataclass(frozen=True)
class Options:
    """What all calls of a process share."""

    url: str  # where to POST the offer
    host: str  # our address
    payloads: Sequence[bytes]  # 20 ms of Opus each
    certificate: RTCCertificate
    channel: bool = False
    rto_s: float = 0.1
    setup_s: float = 15.0


@dataclass
class Timeline:
    """Milliseconds since the offer went out."""

    began: float
    marks: dict[str, float] = field(default_factory=dict)

    def mark(self, name: str) -> None:
        self.marks.setdefault(name, round((time.monotonic() - self.began) * 1e3, 1))


class Leg:
    """What `RTCDtlsTransport` needs of an ICE transport."""

    role = "controlling"

    def __init__(self, call: "LeanCall") -> None:
        self._call = call
        self.queue: asyncio.Queue[bytes] = asyncio.Queue(_QUEUE)

    async def _recv(self) -> bytes:
        return await self.queue.get()

    async def _send(self, data: bytes) -> None:
        self._call.send(data)


class LeanCall:
    """`start`, then `tick` every 20 ms, then `close`; everything else is in between."""

    def __init__(self, options: Options, http: httpx.AsyncClient) -> None:
        self._options = options
        self._http = http
        self._agent = Agent(secrets.token_bytes, rto_s=options.rto_s)
        self._leg = Leg(self)
        self._dtls = RTCDtlsTransport(cast(RTCIceTransport, self._leg), [options.certificate])
        self._sctp: RTCSctpTransport | None = None
        self.channel: RTCDataChannel | None = None  # once it is open
        self._socket = self._open_socket()
        self.speech = SpeechStream(
            options.payloads,
            secrets.randbits(32),
            first_sequence=secrets.randbits(16),
            first_timestamp=secrets.randbits(32),
            begin_at=secrets.randbelow(len(options.payloads)),  # calls do not speak in chorus
        )
        self._rejected = 0  # SRTP that did not authenticate
        self._offers = 0
        self._connected = asyncio.Event()
        self._location = ""
        self.state = "new"
        self.error: str | None = None  # why set-up failed
        self.muted = False
        self._fell_silent: float | None = None  # for good: the account of gaps ends here
        self.timeline = Timeline(time.monotonic())

    async def start(self) -> None:
        """Set the call up. Raises `TimeoutError`, `AnswerError`, `httpx.HTTPError`."""
        self.state = "connecting"
        self.timeline = Timeline(time.monotonic())
        async with asyncio.timeout(self._options.setup_s):
            answer = await self._negotiate(self._options.url)
            self.timeline.mark("answer_ms")
            await self._connected.wait()
            self.timeline.mark("ice_ms")
            await self._secure(answer)
            self.timeline.mark("dtls_ms")
            if self._sctp is not None:
                await self._open_channel(self._sctp, answer)
        self.state = "connected"

    def tick(self, now: float) -> None:
        """Send the next 20 ms of speech, and whatever is due of ICE."""
        if self.state == "connected" and not self.muted:
            self.send(self.protect(self.speech.next_packet()))
        self.keep_alive(now)

    def protect(self, packet: bytes) -> bytes:
        """An RTP packet as SRTP. The call must be connected."""
        protected: bytes = self._dtls._tx_srtp.protect(packet)
        return protected

    def keep_alive(self, now: float) -> None:
        """Send whatever is due of ICE."""
        if self._location:
            self._agent.timer(now)
            self._flush()

    def move(self, announce: bool) -> Address:
        """Go on from a new port, as after a NAT's change of mind. `announce`: check at once, as a
        client does that noticed. The new address."""
        self._close_socket()
        self._socket = self._open_socket()
        if announce:
            self._agent.check_now(time.monotonic())
            self._flush()
        return self.address

    async def restart(self) -> float:
        """ICE restart; milliseconds until the answer."""
        began = time.monotonic()
        await self._negotiate(self._location)
        return (time.monotonic() - began) * 1e3

    def fall_silent(self) -> None:
        """The last thing before `close`: what is under way still arrives."""
        self.muted = True
        self._fell_silent = time.monotonic()

    async def close(self) -> None:
        """Hang up. A second time does nothing."""
        if self.state == "ended":
            return
        self.state = "ended"
        if self._sctp is not None:
            await self._sctp.stop()
        await self._dtls.stop()
        if self._location:
            with contextlib.suppress(httpx.HTTPError):
                await self._http.delete(self._location)
        self._close_socket()

    @property
    def address(self) -> Address:
        return cast(Address, self._socket.getsockname())

    def report(self) -> dict[str, Any]:
        selected = self._agent.selected
        return {
            "id": self._location.rpartition("/")[2],
            "ssrc": self.speech.ssrc,
            "state": self.state,
            "error": self.error,
            "remote": render(selected) if selected else None,
            "first_check_sent": self._agent.first_check_sent,
            "rtt_ms": self._agent.rtt_ms and round(self._agent.rtt_ms, 2),
            "timeline": self.timeline.marks,
            "rejected": self._rejected,
            **self.speech.report(self._fell_silent or time.monotonic()),
        }

    def send(self, data: bytes, to: Address | None = None) -> None:
        """Send a datagram to the selected address, or to `to`."""
        target = to or self._agent.selected
        if target is not None:
            with contextlib.suppress(OSError):  # what a full buffer or a dead link does
                self._socket.sendto(data, target)

    async def exchange(self, url: str, offer: str) -> tuple[str, str]:
        """Hand in an offer; the answer and where the call is, which a restart does not tell again.
        Raises `httpx.HTTPError`."""
        response = await self._http.post(
            url, content=offer, headers={"Content-Type": "application/sdp"}
        )
        response.raise_for_status()
        return response.text, response.headers.get("location", url)

    async def _negotiate(self, url: str) -> sdp.Answer:
        ice = Credentials(_random_text(8), _random_text(24))
        self._offers += 1
        fingerprint = self._options.certificate.getFingerprints()[0]
        local = sdp.Local(
            ice,
            f"{fingerprint.algorithm} {fingerprint.value}",
            self.speech.ssrc,
            self.address,
            self._options.channel,
            self._offers,
        )
        text, location = await self.exchange(url, sdp.offer(local))
        answer = sdp.read_answer(text)
        self._location = self._location or urljoin(url, location)
        self.speech.payload_type = answer.payload_type
        self._agent.start(ice, answer.ice, answer.address, time.monotonic())
        self._flush()
        return answer

    async def _secure(self, answer: sdp.Answer) -> None:
        self._dtls._set_role("client" if answer.setup == "passive" else "server")
        if self._options.channel and answer.sctp_port:
            self._sctp = RTCSctpTransport(self._dtls)
        fingerprint = RTCDtlsFingerprint(*answer.fingerprint)
        await self._dtls.start(RTCDtlsParameters(fingerprints=[fingerprint]))
        if self._dtls.state != "connected":
            raise ConnectionError(f"DTLS is {self._dtls.state}")

    async def _open_channel(self, sctp: RTCSctpTransport, answer: sdp.Answer) -> None:
        opened = asyncio.Event()
        channel = RTCDataChannel(sctp, RTCDataChannelParameters(label="oai-events"))
        channel.on("open", opened.set)
        channel.on("message", self.hear_message)
        await sctp.start(RTCSctpCapabilities(maxMessageSize=65536), answer.sctp_port or 5000)
        await opened.wait()
        self.channel = channel
        self.timeline.mark("channel_ms")

    def _receive(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while True:
                data, source = self.read(self._socket)
                self._take(data, source, time.monotonic())

    def read(self, sock: socket.socket) -> tuple[bytes, Address]:
        """One datagram and its source. Raises `BlockingIOError` when there is none."""
        return sock.recvfrom(2048)

    def _take(self, data: bytes, source: Address, now: float) -> None:
        found = classify(data)
        if found is PacketClass.STUN:
            self._agent.receive(data, source, now)
            self._flush()
            if self._agent.selected is not None:
                self._connected.set()
        elif found is PacketClass.DTLS:
            if not self._leg.queue.full():
                self._leg.queue.put_nowait(data)
        elif found is PacketClass.RTP and self._dtls._rx_srtp is not None:
            try:
                self._take_media(data, now)
            except pylibsrtp.Error:
                self._rejected += 1

    def _take_media(self, data: bytes, now: float) -> None:
        if is_rtcp(data):
            self.hear_report(self._dtls._rx_srtp.unprotect_rtcp(data))
            return
        packet = self._dtls._rx_srtp.unprotect(data)
        self.timeline.mark("first_audio_ms")
        self.hear(packet, now)

    def hear(self, packet: bytes, now: float) -> None:
        """Take an RTP packet that is authentic."""
        self.speech.receive(packet, now)

    def hear_report(self, packet: bytes) -> None:
        """Take an RTCP packet that is authentic."""
        self.speech.receive_report(packet)

    def hear_message(self, message: str | bytes) -> None:
        """Take a message of the data channel."""

    def _flush(self) -> None:
        for data, target in self._agent.out:
            self.send(data, target)
        self._agent.out.clear()

    def _open_socket(self) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.bind((self._options.host, 0))
        asyncio.get_running_loop().add_reader(sock, self._receive)
        return sock

    def _close_socket(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()


def _random_text(length: int) -> str:
    return "".join(secrets.choice(_ICE_CHARS) for _ in range(length))
