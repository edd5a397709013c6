"""Real handshakes pass whole; strays and forgeries do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transceiver.records import ALERT, DATA, HANDSHAKE, fragments, post_quantum, record
from tests.unit.transceiver.records import records as split
from tests.unit.transceiver.test_dtls import Pair, RsaIdentity
from transceiver.handshake import MAX_MESSAGE, Reject, examine

HELLO = next(split(Pair().begin().client.outbox[0])).body


def message(length: int, offset: int, fragment: int, kept: int | None = None) -> bytes:
    sizes = length.to_bytes(3, "big") + b"\0\0" + offset.to_bytes(3, "big")
    return b"\1" + sizes + fragment.to_bytes(3, "big") + bytes(fragment if kept is None else kept)


@pytest.mark.parametrize("identity", [None, RsaIdentity()], ids=["ecdsa", "rsa"])
def test_everything_that_a_client_sends_passes(identity: RsaIdentity | None) -> None:
    pair = Pair(identity=identity) if identity else Pair()
    pair.begin()
    while pair.client.outbox or pair.server.outbox:
        for ours, other in ((pair.client, pair.server), (pair.server, pair.client)):
            datagrams, ours.outbox = ours.outbox, []
            for datagram in datagrams:
                assert examine(datagram) is None
                other.dtls.receive(datagram, 0.0)
    assert pair.connected


@pytest.mark.parametrize("size", [1, 200, 1175])
def test_fragments_pass(size: int) -> None:
    datagrams = fragments(post_quantum(HELLO), size)
    assert len(datagrams) > 1
    assert {examine(datagram) for datagram in datagrams} == {None}
    assert examine(b"".join(datagrams)) is None


def test_several_messages_in_a_record_pass() -> None:
    assert examine(record(HANDSHAKE, HELLO + HELLO)) is None


def test_what_is_encrypted_passes() -> None:
    for kind in (ALERT, DATA, HANDSHAKE):
        assert examine(record(kind, b"anything", epoch=1)) is None


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        pytest.param(record(ALERT, b"\2\x28"), Reject.UNPROTECTED, id="alert"),
        pytest.param(record(ALERT, b"\1\0"), Reject.UNPROTECTED, id="close_notify"),
        pytest.param(record(DATA, b"x"), Reject.UNPROTECTED, id="data"),
        pytest.param(record(99, b"x"), Reject.UNPROTECTED, id="unknown_type"),
        pytest.param(
            record(HANDSHAKE, HELLO) + record(ALERT, b"\2\x28"), Reject.UNPROTECTED, id="second"
        ),
        pytest.param(record(HANDSHAKE, b""), Reject.MALFORMED, id="empty"),
        pytest.param(record(HANDSHAKE, HELLO[:-1]), Reject.MALFORMED, id="short_message"),
        pytest.param(record(HANDSHAKE, HELLO + b"x"), Reject.MALFORMED, id="long_message"),
        pytest.param(record(HANDSHAKE, HELLO)[:-1], Reject.MALFORMED, id="cut_record"),
        pytest.param(b"\x16\xfe\xfd", Reject.MALFORMED, id="cut_header"),
        pytest.param(b"\x16\x03\x03" + bytes(10), Reject.MALFORMED, id="tls"),
        pytest.param(record(HANDSHAKE, message(9, 5, 5)), Reject.MALFORMED, id="past_end"),
        pytest.param(
            record(HANDSHAKE, message(MAX_MESSAGE + 1, 0, 5)), Reject.MALFORMED, id="huge"
        ),
        pytest.param(record(HANDSHAKE, message(9, 0, 9, 8)), Reject.MALFORMED, id="too_few"),
    ],
)
def test_strays_do_not(datagram: bytes, reason: Reject) -> None:
    assert examine(datagram) is reason


@given(st.binary(max_size=80) | st.binary(max_size=60).map(lambda b: b"\x16\xfe\xfd" + b))
def test_any_bytes_are_judged(datagram: bytes) -> None:
    assert examine(datagram) in (None, Reject.MALFORMED, Reject.UNPROTECTED)
