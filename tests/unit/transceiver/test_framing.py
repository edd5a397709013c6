import contextlib
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.wire import spp
from transceiver.framing import FramingError, PlainFraming, Reject, SppFraming

RELAY = ("10.2.0.1", 5107)
CLIENT, VIP = ("198.51.100.7", 40000), ("203.0.113.10", 3478)
HEADER = spp.encode(spp.Header(CLIENT, VIP))
SPP = SppFraming([ip_network("10.2.0.0/30"), ip_network("10.2.9.9/32")])


def test_spp_opens_and_seals() -> None:
    path, payload = SPP.open(HEADER + b"x", RELAY)
    assert payload == b"x"
    assert SPP.client(path) == CLIENT
    assert SPP.vip(path) == VIP
    assert SPP.seal(path, b"reply") == HEADER + b"reply"


def test_the_path_is_the_same_by_every_relay() -> None:
    assert SPP.open(HEADER + b"x", RELAY)[0] == SPP.open(HEADER + b"y", ("10.2.9.9", 5100))[0]


@pytest.mark.parametrize(
    ("datagram", "source", "reason"),
    [
        pytest.param(HEADER + b"x", ("10.2.0.4", 5100), Reject.NOT_A_RELAY, id="foreign_source"),
        pytest.param(b"\x00\x01" + bytes(60), RELAY, Reject.NOT_SPP, id="bare_stun"),
        pytest.param(HEADER, RELAY, Reject.NOT_SPP, id="header_only"),
        pytest.param(HEADER[:20], RELAY, Reject.NOT_SPP, id="cut_header"),
        pytest.param(b"", RELAY, Reject.NOT_SPP, id="empty"),
    ],
)
def test_spp_rejects(datagram: bytes, source: tuple[str, int], reason: Reject) -> None:
    with pytest.raises(FramingError) as caught:
        SPP.open(datagram, source)
    assert caught.value.reason is reason


@given(st.binary(max_size=80) | st.binary(max_size=80).map(lambda b: spp.MAGIC + b))
def test_spp_raises_only_framing_error_and_reads_what_it_opens(datagram: bytes) -> None:
    with contextlib.suppress(FramingError):
        path, payload = SPP.open(datagram, RELAY)
        assert SPP.seal(path, payload) == datagram
        SPP.client(path)
        SPP.vip(path)


def test_plain_takes_the_source_for_the_client() -> None:
    plain = PlainFraming()
    path, payload = plain.open(HEADER + b"x", CLIENT)  # and reads no header
    assert payload == HEADER + b"x"
    assert plain.client(path) == CLIENT
    assert plain.vip(path) is None
    assert plain.seal(path, b"reply") == b"reply"


def test_plain_rejects_nothing_but_nothing() -> None:
    with pytest.raises(FramingError) as caught:
        PlainFraming().open(b"", CLIENT)
    assert caught.value.reason is Reject.EMPTY
