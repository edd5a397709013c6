import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.wire.packet_class import PacketClass, classify, is_rtcp, ssrc_of, stun_type


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (0, PacketClass.STUN),
        (3, PacketClass.STUN),
        (4, PacketClass.OTHER),
        (19, PacketClass.OTHER),
        (20, PacketClass.DTLS),
        (63, PacketClass.DTLS),
        (64, PacketClass.OTHER),
        (127, PacketClass.OTHER),
        (128, PacketClass.RTP),
        (191, PacketClass.RTP),
        (192, PacketClass.OTHER),
    ],
)
def test_classes_end_where_rfc_7983_says(first: int, expected: PacketClass) -> None:
    assert classify(bytes([first])) is expected


def test_empty_payload_is_other() -> None:
    assert classify(b"") is PacketClass.OTHER


def test_rtcp_has_no_source_of_ours() -> None:
    sender_report = bytes([0x80, 200]) + bytes(26)
    assert is_rtcp(sender_report)
    assert ssrc_of(sender_report) is None


def test_ssrc_is_read_in_network_order() -> None:
    assert ssrc_of(bytes([0x80, 111]) + bytes(6) + b"\x01\x02\x03\x04") == 0x01020304


@given(st.binary(max_size=40))
def test_any_bytes_have_a_class(payload: bytes) -> None:
    assert isinstance(classify(payload), PacketClass)
    assert (ssrc_of(payload) is None) or classify(payload) is PacketClass.RTP
    assert (stun_type(payload) is None) or classify(payload) is PacketClass.STUN
