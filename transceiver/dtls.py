"""DTLS and SRTP of one call: aiortc's transport without its pump.

aiortc reads datagrams in a task for each call. Here each goes in by a plain call and is finished
when that returns: the caller learns whether OpenSSL accepted it, nothing is queued and no task is
left over. Which path a datagram came by and goes out by is not known here. This module and
`sctp.py` are the only ones that touch private names of aiortc.
"""

import contextlib
import enum
import functools
import hmac
import importlib.metadata
import math
from collections.abc import Callable
from typing import cast

import pylibsrtp
from aiortc.rtcdtlstransport import (
    SRTP_PROFILES,
    X509_DIGEST_ALGORITHMS,
    RTCCertificate,
    RTCDtlsTransport,
    State,
)
from aiortc.rtcicetransport import RTCIceTransport
from OpenSSL import SSL

from transceiver import srtp
from transceiver.aiortc_parts import require, run
from transceiver.flight import DATAGRAM_SIZE, LastFlight, datagrams
from transceiver.srtp import Srtp

_DTLS_1_2 = 0xFEFD
_MAX_RECORD = 16_384  # bytes of plain text, RFC 6347 section 4.1
_CIPHERS = (
    b"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:"
    b"ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA:"
    b"ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305:ECDHE-RSA-AES128-SHA"
)
_USED = (
    *("_data_receiver", "_register_data_receiver", "_role", "_rx_srtp", "_send_data", "_set_role"),
    *("_set_state", "_setup_srtp", "_ssl", "_state", "_tx_srtp", "_unregister_data_receiver"),
    "_write_ssl",
)


class Failure(enum.StrEnum):
    """Why there is no secure channel."""

    HANDSHAKE = "dtls_failed"
    FINGERPRINT = "fingerprint_mismatch"
    NO_SRTP = "no_srtp_profile"


class Leg:
    """The three members that `RTCDtlsTransport` wants of an ICE transport."""

    role = "controlled"

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self.send = send

    async def _recv(self) -> bytes:
        raise ConnectionError("datagrams come in by DtlsTransport.receive")

    async def _send(self, data: bytes) -> None:
        self.send(data)


class Identity:
    """Certificate and SSL context of this process: one for all calls. Raises `AiortcError`."""

    def __init__(self) -> None:
        self.certificate = RTCCertificate.generateCertificate()
        version = importlib.metadata.version("aiortc")
        require(version, self.certificate, ("_create_ssl_context",), "RTCCertificate")
        probe = RTCDtlsTransport(cast(RTCIceTransport, Leg(lambda data: None)), [self.certificate])
        require(version, probe, _USED, "RTCDtlsTransport")
        require(version, pylibsrtp.Session(), srtp.USED, "pylibsrtp.Session")
        self._context = self._make_context()

    def _make_context(self) -> SSL.Context:
        context = self.certificate._create_ssl_context(SRTP_PROFILES)
        context.set_options(SSL.OP_NO_QUERY_MTU)  # else the MTU of a connection is forgotten
        context.set_min_proto_version(_DTLS_1_2)
        context.set_max_proto_version(_DTLS_1_2)  # `flight.datagrams` reads its record headers
        context.set_cipher_list(_CIPHERS)
        return context

    @functools.cached_property
    def fingerprint(self) -> str:
        """As it stands behind `a=fingerprint:` (RFC 8122 section 5)."""
        first = self.certificate.getFingerprints()[0]
        return f"{first.algorithm} {first.value}"

    def connection(self, *, server: bool) -> SSL.Connection:
        connection = SSL.Connection(self._context)
        connection.set_ciphertext_mtu(DATAGRAM_SIZE)
        if server:
            connection.set_accept_state()
        else:
            connection.set_connect_state()
        return connection


class DtlsTransport(RTCDtlsTransport):
    """The secure channel of one call.

    `fingerprints` are (algorithm, value) of the peer's certificate from its SDP. `on_connected`
    and `on_closed` (None: an alert of the peer) are called from inside `receive`.
    """

    def __init__(
        self,
        send: Callable[[bytes], None],
        identity: Identity,
        *,
        server: bool,
        fingerprints: tuple[tuple[str, str], ...],
        on_connected: Callable[[], None],
        on_closed: Callable[[Failure | None], None],
    ) -> None:
        super().__init__(cast(RTCIceTransport, Leg(send)), [identity.certificate])
        self._set_role("server" if server else "client")
        self._out = send
        self._identity = identity
        self._fingerprints = fingerprints
        self._on_connected = on_connected
        self._on_closed = on_closed
        self._flight = LastFlight()
        self.srtp: Srtp | None = None  # while `connected`

    @property
    def connected(self) -> bool:
        return self.srtp is not None

    def begin(self, now: float) -> None:
        """Make the TLS object; as client, say hello."""
        self._ssl = self._identity.connection(server=self._role == "server")
        self._set_state(State.CONNECTING)
        if self._role == "client":
            self._shake(now)

    def receive(self, datagram: bytes, now: float) -> bool:
        """Take a DTLS datagram; whether a record in it was authentic."""
        if self._ssl is None or self._state not in (State.CONNECTING, State.CONNECTED):
            return False
        self._ssl.bio_write(datagram)
        finished = self._state is State.CONNECTING and self._shake(now)
        return self._drain() or finished

    def timer(self, now: float) -> None:
        """Repeat what the peer may have missed."""
        if self.srtp is not None and self.srtp.heard:
            self._flight.arrived()
        for datagram in self._flight.due(now):
            self._out(datagram)
        if self._state is State.CONNECTING and self._ssl and self._ssl.DTLSv1_get_timeout() == 0:
            self._ssl.DTLSv1_handle_timeout()
            self._flush()

    def deadline(self, now: float) -> float:
        """When `timer` has work next; math.inf = never."""
        openssl = self._ssl.DTLSv1_get_timeout() if self._ssl and not self.connected else None
        return min(self._flight.deadline, math.inf if openssl is None else now + openssl)

    def close(self) -> None:
        """Say close_notify if there is anybody to say it to; nothing goes out afterwards."""
        if self._ssl is not None and self._state is State.CONNECTED:
            with contextlib.suppress(SSL.Error):
                self._ssl.shutdown()
            self._flush()
        self._flight.arrived()
        self._set_state(State.CLOSED)
        self._ssl = self.srtp = None

    def _shake(self, now: float) -> bool:
        """Go on with the handshake; whether it is finished."""
        assert self._ssl is not None
        try:
            self._ssl.do_handshake()
        except SSL.WantReadError:
            self._remember(now)
            return False
        except SSL.Error:
            self._flush()  # the alert
            self._fail(Failure.HANDSHAKE)
            return False
        if not self._is_expected_peer():
            self._fail(Failure.FINGERPRINT)
            return False
        self._setup_srtp()
        if self._rx_srtp is None:
            self._fail(Failure.NO_SRTP)
            return False
        if self._role == "client":
            self._flight.arrived()  # the server's Finished came after ours
        self.srtp = Srtp(self._rx_srtp, self._tx_srtp)
        self._set_state(State.CONNECTED)
        self._remember(now)
        self._on_connected()
        return True

    def _is_expected_peer(self) -> bool:
        """Of each known algorithm one fingerprint has to match, and there has to be one: a client
        with several certificates gives those of all (RFC 8122 section 5)."""
        assert self._ssl is not None
        certificate = self._ssl.get_peer_certificate(as_cryptography=True)
        if certificate is None:
            return False
        matching: dict[str, bool] = {}
        for algorithm, value in self._fingerprints:
            name = algorithm.lower()
            digest = X509_DIGEST_ALGORITHMS.get(name)
            if digest is not None:
                actual = certificate.fingerprint(digest).hex(":").encode()
                matches = hmac.compare_digest(actual, value.lower().encode())
                matching[name] = matches or matching.get(name, False)
        return bool(matching) and all(matching.values())

    def _drain(self) -> bool:
        """Hand every record that is complete to SCTP; whether there was any."""
        accepted = False
        while self._ssl is not None and self._state is State.CONNECTED:
            try:
                data = self._ssl.recv(_MAX_RECORD)
            except SSL.WantReadError:
                break
            except SSL.Error:  # close_notify or a fatal alert; nothing forged comes so far
                self._on_closed(None)
                return True
            accepted = True
            self._flight.arrived()
            if self._data_receiver is not None:
                run(self._data_receiver._handle_data(data))
        if self._ssl is not None:
            self._flush()  # an answer to a repeated Finished
        return accepted

    def _remember(self, now: float) -> None:
        flight = self._flush()
        if flight:
            self._flight.wrote(flight, now)

    def _flush(self) -> list[bytes]:
        """Send what OpenSSL wrote; returns it as datagrams."""
        assert self._ssl is not None
        written = b""
        while True:
            try:
                written += self._ssl.bio_read(65_536)
            except SSL.Error:
                break
        flight = datagrams(written)
        for datagram in flight:
            self._out(datagram)
        return flight

    def _fail(self, failure: Failure) -> None:
        self._set_state(State.FAILED)
        self._flight.arrived()
        self._ssl = None  # what it wrote meanwhile is not for this peer
        self._on_closed(failure)

    async def _write_ssl(self) -> None:
        if self._ssl is not None:
            self._flush()

    async def _send_data(self, data: bytes) -> None:
        """For SCTP, whose timers may still fire when the channel is gone."""
        if self._state is State.CONNECTED:
            await super()._send_data(data)
