"""A transceiver without sockets, loop or real time, and clients for it.

`World` carries datagrams between the mux and its clients and owns the clock. A `Client` speaks ICE,
DTLS (by our own transport in the client role) and SRTP; offers are audio only, so nothing needs a
running loop.
"""

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, cast

from aioice import stun

from relayctl.wire import spp
from relayctl.wire.address import Address
from relayctl.wire.packet_class import PacketClass, classify, is_rtcp
from relayctl.wire.route_token import Key
from transceiver import rtp
from transceiver.admission import Admission
from transceiver.audio.pacer import Pacer
from transceiver.backends.base import BackendFactory
from transceiver.backends.echo import Mode, make
from transceiver.call import Call
from transceiver.calls import Calls
from transceiver.counts import Counts
from transceiver.dialects.choice import DialectName
from transceiver.dtls import DtlsTransport, Failure, Identity
from transceiver.framing import PlainFraming, SppFraming
from transceiver.minting import Minter
from transceiver.mux import Mux
from transceiver.surroundings import Surroundings

RELAY: Address = ("10.2.0.1", 5107)
OTHER_RELAY: Address = ("10.2.0.9", 5101)
VIP: Address = ("203.0.113.10", 3478)
ENDPOINT: Address = ("10.2.0.2", 5000)
IDENTITY = Identity()
CLIENT_IDENTITY = Identity()
FRAME = bytes([0xF8, 0xFF, 0xFE])  # Opus: 20 ms of silence
STEP_S = 0.05

Lose = Callable[[str, bytes], bool]  # direction "up" or "down", payload


def no_loss(direction: str, payload: bytes) -> bool:
    return False


class FakeSocket:
    """Takes what the mux sends."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, Address]] = []

    def sendto(self, data: bytes, address: Address) -> None:
        self.sent.append((data, address))


@dataclass
class Client:
    """One ICE, DTLS and SRTP endpoint at `address`; `outbox` is what it wants to send."""

    address: Address
    identity: Identity = CLIENT_IDENTITY
    ufrag: str = "abcd"
    pwd: str = "clientpasswordclientpw"
    ssrc: int = 0x11223344
    answers_checks: bool = True
    is_dtls_server: bool = False
    fingerprint: str = ""
    outbox: list[bytes] = field(default_factory=list)
    heard: list[rtp.Packet] = field(default_factory=list)
    reports: int = 0
    mapped: Address | None = None
    responses: int = 0
    closed: bool = False
    sequence: int = 100
    call_id: str = ""
    token: str = ""
    server_pwd: str = ""
    dtls: DtlsTransport | None = None

    def offer(self, *, setup: str = "actpass", direction: str = "sendrecv") -> str:
        lines = [
            *("v=0", "o=- 1 1 IN IP4 0.0.0.0", "s=-", "t=0 0", "a=group:BUNDLE 0"),
            *("m=audio 9 UDP/TLS/RTP/SAVPF 111", "c=IN IP4 0.0.0.0", "a=mid:0", f"a={direction}"),
            *("a=rtcp-mux", "a=rtpmap:111 opus/48000/2", f"a=ssrc:{self.ssrc} cname:c"),
            *(f"a=ice-ufrag:{self.ufrag}", f"a=ice-pwd:{self.pwd}"),
            f"a=fingerprint:{self.fingerprint or self.identity.fingerprint}",
            f"a=setup:{setup}",
        ]
        return "\r\n".join(lines) + "\r\n"

    def take_answer(self, sdp: str) -> None:
        for line in sdp.split("\r\n"):
            name, _, value = line.partition(":")
            if name == "a=ice-ufrag":
                self.token = value
            elif name == "a=ice-pwd":
                self.server_pwd = value
            elif name == "a=fingerprint" and self.dtls is None:
                algorithm, _, digest = value.partition(" ")
                self._secure(algorithm, digest)

    def _secure(self, algorithm: str, digest: str) -> None:
        self.dtls = DtlsTransport(
            self.outbox.append,
            self.identity,
            server=self.is_dtls_server,
            fingerprints=((algorithm, digest),),
            on_connected=lambda: None,
            on_closed=self._on_closed,
        )

    def _on_closed(self, failure: Failure | None) -> None:
        self.closed = True

    @property
    def connected(self) -> bool:
        return self.dtls is not None and self.dtls.connected

    def check(self, *, nominate: bool = True) -> None:
        """Send a connectivity check."""
        self.outbox.append(self.check_bytes(nominate=nominate))

    def check_bytes(self, *, nominate: bool = True, pwd: str | None = None) -> bytes:
        message = stun.Message(
            message_method=stun.Method.BINDING,
            message_class=stun.Class.REQUEST,
            transaction_id=os.urandom(12),
        )
        message.attributes["USERNAME"] = f"{self.token}:{self.ufrag}"
        message.attributes["PRIORITY"] = 1853824767
        message.attributes["ICE-CONTROLLING"] = 1
        if nominate:
            message.attributes["USE-CANDIDATE"] = None
        message.add_message_integrity((pwd or self.server_pwd).encode())
        message.add_fingerprint()
        return bytes(message)

    def speak(self, payload: bytes = FRAME) -> None:
        """Send one packet of audio."""
        assert self.dtls is not None
        assert self.dtls.srtp is not None
        self.sequence = (self.sequence + 1) & 0xFFFF
        timestamp = self.sequence * rtp.FRAME & 0xFFFFFFFF
        packet = rtp.Packet(111, self.sequence, timestamp, self.ssrc, payload)
        self.outbox.append(self.dtls.srtp.protect(rtp.build(packet)))

    def hello(self, now: float) -> None:
        assert self.dtls is not None
        self.dtls.begin(now)

    def receive(self, payload: bytes, now: float) -> None:
        kind = classify(payload)
        if kind is PacketClass.STUN:
            self._stun(payload)
        elif kind is PacketClass.DTLS and self.dtls is not None:
            self.dtls.receive(payload, now)
        elif kind is PacketClass.RTP and self.dtls is not None:
            self._media(payload)

    def _media(self, payload: bytes) -> None:
        assert self.dtls is not None
        if self.dtls.srtp is None:
            return
        if is_rtcp(payload):
            self.reports += self.dtls.srtp.unprotect_rtcp(payload) is not None
            return
        plain = self.dtls.srtp.unprotect(payload)
        if plain is not None:
            self.heard.append(rtp.parse(plain))

    def _stun(self, payload: bytes) -> None:
        message = stun.parse_message(payload)
        if message.message_class is stun.Class.RESPONSE:
            self.responses += 1
            self.mapped = message.attributes["XOR-MAPPED-ADDRESS"]
        elif message.message_class is stun.Class.REQUEST and self.answers_checks:
            if message.attributes["USERNAME"] != f"{self.ufrag}:{self.token}":
                return
            response = stun.Message(
                message_method=stun.Method.BINDING,
                message_class=stun.Class.RESPONSE,
                transaction_id=message.transaction_id,
            )
            response.attributes["XOR-MAPPED-ADDRESS"] = VIP
            response.add_message_integrity(self.pwd.encode())
            response.add_fingerprint()
            self.outbox.append(bytes(response))


class World:
    """`now` is the clock of everything. `lose` decides what the network loses."""

    def __init__(
        self,
        *,
        capacity: int = 30,
        mode: Mode = Mode.OPUS,
        plain: bool = False,
        make_backend: BackendFactory | None = None,
    ) -> None:
        self.now = 1000.0
        self.plain = plain
        self.socket = FakeSocket()
        self.counts = Counts()
        self.phases: list[tuple[str, float]] = []
        self.lose: Lose = no_loss
        self.relay = RELAY
        self.clients: dict[Address, Client] = {}
        self.vias: list[Address] = []  # by which the mux sent
        framing = PlainFraming() if plain else SppFraming([ip_network("10.2.0.0/28")])
        self.mux = Mux(cast(Any, self.socket), framing, self.counts, lambda: self.now)
        self.pacer = Pacer(lambda: self.now, self.counts.lateness)
        around = Surroundings(
            mux=self.mux,
            pacer=self.pacer,
            identity=IDENTITY,
            backend="echo",
            make_backend=make_backend or (lambda client: make(client, mode)),
            random_bytes=os.urandom,
            observe=lambda phase, seconds: self.phases.append((phase, seconds)),
            stamp=lambda: "2030-01-02T03:04:05.678+00:00",
        )
        minter = Minter(Key(1, bytes(32)), 7, ENDPOINT, os.urandom)
        self.calls = Calls(around, minter, Admission(capacity))

    def client(self, port: int = 40000, **fields: Any) -> Client:
        """A client with an answered offer."""
        client = self.place(Client(("198.51.100.7", port), **fields))
        client.call_id, answer = self.calls.create(client.offer(), (VIP,), DialectName.PLAIN)
        client.take_answer(answer)
        return client

    def place(self, client: Client) -> Client:
        self.clients[client.address] = client
        return client

    def call(self, client: Client) -> Call:
        return self.calls.find(client.call_id)

    def move(self, client: Client, port: int) -> None:
        """A new address for the client, as a NAT makes it."""
        self.clients.pop(client.address, None)
        client.address = (client.address[0], port)
        self.clients[client.address] = client

    def frame(self, address: Address, payload: bytes, vip: Address = VIP) -> bytes:
        return payload if self.plain else spp.encode(spp.Header(address, vip)) + payload

    def up(self, address: Address, payload: bytes, vip: Address = VIP) -> None:
        """Bring a payload of `address` to the mux."""
        source = address if self.plain else self.relay
        self.mux.receive(self.frame(address, payload, vip), source, self.now)

    def pump(self) -> None:
        """Carry datagrams both ways until nobody has any."""
        while self.socket.sent or any(client.outbox for client in self.clients.values()):
            for client in list(self.clients.values()):
                outgoing = client.outbox.copy()
                client.outbox.clear()
                for payload in outgoing:
                    if not self.lose("up", payload):
                        self.up(client.address, payload)
            sent = self.socket.sent.copy()
            self.socket.sent.clear()
            for datagram, via in sent:
                self.vias.append(via)
                address, payload = self._open(datagram, via)
                target = self.clients.get(address)
                if target is not None and not self.lose("down", payload):
                    target.receive(payload, self.now)

    def _open(self, datagram: bytes, via: Address) -> tuple[Address, bytes]:
        if self.plain:
            return via, datagram
        header, payload = spp.split(datagram)
        return spp.decode(header).client, payload

    def run(self, seconds: float, *, until: Callable[[], bool] | None = None) -> float:
        """Let time pass in turns of the wheel; returns how long it took."""
        began = self.now
        while self.now < began + seconds - 1e-9:
            if until is not None and until():
                break
            self.now += STEP_S
            self.mux.tick(self.now)
            for client in list(self.clients.values()):
                if client.dtls is not None:
                    client.dtls.timer(self.now)
            self.pump()
        return self.now - began

    def connect(self, client: Client) -> Client:
        """ICE and DTLS, without time passing unless something gets lost."""
        client.check()
        self.pump()
        client.hello(self.now)
        self.pump()
        return client

    def connected(self, port: int = 40000, **fields: Any) -> Client:
        client = self.connect(self.client(port, **fields))
        assert client.connected
        return client


def is_dtls(payload: bytes) -> bool:
    return classify(payload) is PacketClass.DTLS


def lose_nth(direction: str, n: int, wanted: Callable[[bytes], bool] = is_dtls) -> Lose:
    """Lose the n-th matching datagram of a direction, once."""
    seen = 0

    def lose(way: str, payload: bytes) -> bool:
        nonlocal seen
        if way != direction or not wanted(payload):
            return False
        seen += 1
        return seen == n

    return lose


def garbage_rtp(ssrc: int) -> bytes:
    """An SRTP packet that nobody protected."""
    return struct.pack("!BBHII", 0x80, 111, 1, 960, ssrc) + os.urandom(40)
