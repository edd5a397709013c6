"""Two of our transports joined by lists: no loop, no socket, no time."""

from collections.abc import Iterator

import pytest
from aiortc.rtcdtlstransport import RTCCertificate, RTCDtlsTransport
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509 import Certificate, CertificateBuilder, Name, NameAttribute, oid

from tests.unit.transceiver.harness import CLIENT_IDENTITY, IDENTITY
from tests.unit.transceiver.records import ALERT, by_client
from transceiver import aiortc_parts
from transceiver.aiortc_parts import AiortcError
from transceiver.dtls import DtlsTransport, Failure, Identity
from transceiver.flight import DATAGRAM_SIZE
from transceiver.rtp import Packet, build


def fingerprint(identity: Identity) -> tuple[str, str]:
    algorithm, _, value = identity.fingerprint.partition(" ")
    return algorithm, value


class End:
    def __init__(self, identity: Identity, peer: tuple[tuple[str, str], ...], server: bool) -> None:
        self.outbox: list[bytes] = []
        self.sizes: list[int] = []
        self.connects = 0
        self.ends: list[Failure | None] = []
        self.received: list[bytes] = []
        self.dtls = DtlsTransport(
            self._send,
            identity,
            server=server,
            fingerprints=peer,
            on_connected=self._connected,
            on_closed=self.ends.append,
        )
        self.dtls._register_data_receiver(self)

    def _send(self, datagram: bytes) -> None:
        self.outbox.append(datagram)
        self.sizes.append(len(datagram))

    def _connected(self) -> None:
        self.connects += 1

    async def _handle_data(self, data: bytes) -> None:
        self.received.append(data)


class Pair:
    def __init__(
        self,
        for_server: tuple[tuple[str, str], ...] | None = None,
        identity: Identity = CLIENT_IDENTITY,
    ) -> None:
        expected = for_server if for_server is not None else (fingerprint(identity),)
        self.server = End(IDENTITY, expected, True)
        self.client = End(identity, (fingerprint(IDENTITY),), False)

    def begin(self, now: float = 0.0) -> "Pair":
        self.server.dtls.begin(now)
        self.client.dtls.begin(now)
        return self

    def exchange(self, now: float = 0.0) -> list[bool]:
        """Carry everything; what each `receive` of the server said."""
        said: list[bool] = []
        while self.server.outbox or self.client.outbox:
            said += [self.server.dtls.receive(it, now) for it in _taken(self.client.outbox)]
            for datagram in _taken(self.server.outbox):
                self.client.dtls.receive(datagram, now)
        return said

    @property
    def connected(self) -> bool:
        return self.server.dtls.connected and self.client.dtls.connected


def _taken(outbox: list[bytes]) -> Iterator[bytes]:
    while outbox:
        yield outbox.pop(0)


def connected() -> Pair:
    pair = Pair().begin()
    pair.exchange()
    assert pair.connected
    return pair


def send(end: End, data: bytes) -> None:
    aiortc_parts.run(end.dtls._send_data(data))


def test_the_handshake_is_four_datagrams_and_the_last_one_of_the_client_is_its_proof() -> None:
    pair = Pair().begin()
    assert pair.exchange() == [False, True]
    assert pair.connected
    assert (pair.server.connects, pair.client.connects) == (1, 1)
    assert len(pair.server.sizes) == len(pair.client.sizes) == 2
    assert max(pair.server.sizes + pair.client.sizes) <= DATAGRAM_SIZE


def test_handshake_messages_are_not_fragmented() -> None:
    pair = Pair().begin()
    pair.server.dtls.receive(pair.client.outbox.pop(), 0.0)
    flight = pair.server.outbox[0]
    kinds, at = [], 0
    while at < len(flight):
        kinds.append(flight[at + 13])
        at += 13 + int.from_bytes(flight[at + 11 : at + 13], "big")
    # ServerHello, Certificate, ServerKeyExchange, CertificateRequest, ServerHelloDone
    assert kinds == [2, 11, 12, 13, 14]


def test_srtp_goes_both_ways_and_fits_the_other_side() -> None:
    pair = connected()
    packet = build(Packet(111, 1, 960, 7, b"sound"))
    one, other = pair.server.dtls.srtp, pair.client.dtls.srtp
    assert one is not None
    assert other is not None
    assert other.unprotect(one.protect(packet)) == packet
    assert one.unprotect(other.protect(packet)) == packet


def test_nothing_is_authentic_before_the_handshake() -> None:
    pair = Pair()
    assert pair.server.dtls.srtp is None
    assert not pair.server.dtls.receive(b"\x16" + bytes(40), 0.0)


def test_data_and_several_records_in_one_datagram() -> None:
    pair = connected()
    for n in range(3):
        send(pair.client, b"%d" % n)
    together = b"".join(_taken(pair.client.outbox))
    assert pair.server.dtls.receive(together, 0.0)
    assert pair.server.received == [b"0", b"1", b"2"]


@pytest.mark.parametrize("datagram", [b"\x17", b"\x17\xfe\xfd" + bytes(60), b"\x16\xfe\xfd\xff"])
def test_records_that_are_not_authentic_change_nothing(datagram: bytes) -> None:
    pair = connected()
    assert not pair.server.dtls.receive(datagram, 0.0)
    send(pair.client, b"still here")
    pair.exchange()
    assert pair.server.received == [b"still here"]


def test_a_second_hello_on_the_same_path_changes_nothing() -> None:
    pair = connected()
    other = Pair().begin()
    assert not pair.server.dtls.receive(other.client.outbox[0], 0.0)
    send(pair.client, b"x")
    pair.exchange()
    assert pair.server.received == [b"x"]


@pytest.mark.parametrize("algorithm", ["sha-256", "SHA-384", "sha-512"])
def test_fingerprints_of_all_algorithms_in_any_case(algorithm: str) -> None:
    known: dict[str, hashes.HashAlgorithm] = {
        "sha-256": hashes.SHA256(),
        "sha-384": hashes.SHA384(),
        "sha-512": hashes.SHA512(),
    }
    digest = CLIENT_IDENTITY.certificate._cert.fingerprint(known[algorithm.lower()])
    value = digest.hex(":")
    pair = Pair(((algorithm, value.upper()),)).begin()
    pair.exchange()
    assert pair.connected


GOOD = fingerprint(CLIENT_IDENTITY)


@pytest.mark.parametrize(
    "expected",
    [
        pytest.param((("sha-256", ":".join(["AB"] * 32)),), id="wrong"),
        pytest.param((GOOD, ("sha-384", ":".join(["AB"] * 48))), id="one_algorithm_wrong"),
        pytest.param((("SHA-384", ":".join(["AB"] * 48)), GOOD), id="the_other_order"),
        pytest.param((), id="none"),
        pytest.param((("md5", "AB:CD"),), id="unknown_algorithm_only"),
        pytest.param((("sha-256", ""),), id="empty"),
    ],
)
def test_any_doubt_about_the_certificate_fails(expected: tuple[tuple[str, str], ...]) -> None:
    pair = Pair(expected).begin()
    pair.exchange()
    assert pair.server.ends == [Failure.FINGERPRINT]
    assert not pair.server.dtls.connected
    assert not pair.client.dtls.connected  # it never got our Finished


def test_an_unknown_algorithm_beside_a_good_fingerprint_is_no_doubt() -> None:
    pair = Pair((GOOD, ("sha3-512", "AB"))).begin()
    pair.exchange()
    assert pair.connected


@pytest.mark.parametrize("good_at", [0, 1])
def test_a_client_with_two_certificates_may_use_either(good_at: int) -> None:
    offered = [("sha-256", ":".join(["AB"] * 32))]
    offered.insert(good_at, GOOD)
    pair = Pair(tuple(offered)).begin()
    pair.exchange()
    assert pair.connected


def test_close_notify() -> None:
    pair = connected()
    pair.client.dtls.close()
    pair.exchange()
    assert pair.server.ends == [None]
    assert not pair.client.dtls.connected
    send(pair.client, b"too late")
    assert not pair.client.outbox
    pair.client.dtls.close()


@pytest.mark.parametrize(
    ("alert", "ends"),
    [
        pytest.param(b"\x01\x00", [None], id="close_notify"),
        pytest.param(b"\x02\x50", [None], id="internal_error"),
        pytest.param(b"\x01\x5a", [], id="warning"),
    ],
)
def test_alerts_of_the_peer(alert: bytes, ends: list[None]) -> None:
    pair = connected()
    assert pair.server.dtls._ssl is not None
    datagram = by_client(pair.server.dtls._ssl, ALERT, alert, number=1000)
    forged = datagram[:-1] + bytes([datagram[-1] ^ 1])
    assert not pair.server.dtls.receive(forged, 0.0)
    assert pair.server.ends == []
    pair.server.dtls.receive(datagram, 0.0)
    assert pair.server.ends == ends


@pytest.mark.parametrize("state", ["new", "connecting", "connected"])
def test_closes_in_any_state(state: str) -> None:
    pair = {"new": Pair, "connecting": lambda: Pair().begin(), "connected": connected}[state]()
    pair.server.dtls.close()
    assert not pair.server.dtls.receive(b"\x16\xfe\xfd" + bytes(40), 0.0)
    assert pair.server.dtls.srtp is None
    pair.server.dtls.timer(10.0)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_lost_flight_of_ours_comes_again_after_100_ms(lost: int) -> None:
    pair = Pair().begin()
    for _ in range(lost):
        for datagram in _taken(pair.client.outbox):
            pair.server.dtls.receive(datagram, 0.0)
        if _ == lost - 1:
            pair.server.outbox.clear()
        for datagram in _taken(pair.server.outbox):
            pair.client.dtls.receive(datagram, 0.0)
    pair.server.dtls.timer(0.09)
    assert not pair.server.outbox
    pair.server.dtls.timer(0.1)
    assert pair.server.outbox
    pair.exchange(0.1)
    assert pair.connected


def test_replays_stop_once_the_peer_has_shown_that_it_is_done() -> None:
    pair = connected()
    send(pair.client, b"x")
    pair.exchange()
    pair.server.dtls.timer(5.0)
    assert not pair.server.outbox


@pytest.mark.parametrize("authentic", [False, True])
def test_srtp_shows_it_too(authentic: bool) -> None:
    pair = connected()
    one, other = pair.server.dtls.srtp, pair.client.dtls.srtp
    assert one is not None
    assert other is not None
    sealed = other.protect(build(Packet(111, 1, 960, 7, b"sound")))
    one.unprotect(sealed if authentic else bytes(len(sealed)))
    pair.server.dtls.timer(0.1)
    assert bool(pair.server.outbox) != authentic


def test_a_replay_that_was_not_needed_harms_nobody() -> None:
    pair = connected()
    pair.server.dtls.timer(0.1)
    assert pair.server.outbox
    pair.exchange(0.1)
    send(pair.server, b"x")
    pair.exchange()
    assert pair.client.received == [b"x"]


class RsaIdentity(Identity):
    """A peer with an RSA certificate, as GStreamer makes it."""

    def __init__(self) -> None:
        key = rsa.generate_private_key(65537, 2048)
        likeness = CLIENT_IDENTITY.certificate._cert
        name = Name([NameAttribute(oid.NameOID.COMMON_NAME, "rsa")])
        certificate: Certificate = (
            CertificateBuilder(name, name, key.public_key(), 1)
            .not_valid_before(likeness.not_valid_before_utc)
            .not_valid_after(likeness.not_valid_after_utc)
            .sign(key, hashes.SHA256())
        )
        self.certificate = RTCCertificate(key, certificate)  # type: ignore[arg-type]
        self._context = self._make_context()


@pytest.mark.parametrize("we_serve", [True, False])
def test_connects_to_a_peer_with_an_rsa_certificate(we_serve: bool) -> None:
    theirs = RsaIdentity()
    ours = End(IDENTITY, (fingerprint(theirs),), we_serve)
    other = End(theirs, (fingerprint(IDENTITY),), not we_serve)
    pair = Pair()
    pair.server, pair.client = (ours, other) if we_serve else (other, ours)
    pair.begin().exchange()
    assert pair.connected
    assert max(ours.sizes + other.sizes) <= DATAGRAM_SIZE


def test_an_aiortc_without_our_names_is_refused_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(RTCDtlsTransport, "_setup_srtp")
    with pytest.raises(AiortcError, match=r"RTCDtlsTransport\._setup_srtp.*requirements\.lock"):
        Identity()
