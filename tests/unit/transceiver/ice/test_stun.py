"""Reading is strict and raises one error; writing agrees with aioice."""

import contextlib
import struct

import pytest
from aioice import stun as oracle
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transceiver.ice.wire import CLIENT, OURS, answer, check
from transceiver.ice import stun
from transceiver.ice.stun import Reject, StunError

# RFC 5769 section 2.1; its password is a short-term one.
SAMPLE_REQUEST = bytes.fromhex(
    "000100582112a442b7e7a701bc34d686fa87dfae802200105354554e20746573"
    "7420636c69656e74002400046e0001ff80290008932ff9b151263b3600060009"
    "6576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249"
    "c1b571a280280004e57a3bcf"
)
SAMPLE_PASSWORD = "VOkJxbRl1RmTxUk/WvJxBt"

USERNAME = struct.pack("!HH4s", stun.USERNAME, 4, b"ab:c")
INTEGRITY = struct.pack("!HH20s", stun.MESSAGE_INTEGRITY, 20, b"i" * 20)
USE_CANDIDATE = struct.pack("!HH", stun.USE_CANDIDATE, 0)
FINGERPRINT = struct.pack("!HHI", stun.FINGERPRINT, 4, 1)


def message(attributes: bytes, kind: int = stun.BINDING_REQUEST, cookie: int = 0x2112A442) -> bytes:
    return struct.pack("!HHI12s", kind, len(attributes), cookie, b"t" * 12) + attributes


def test_the_rfc_5769_sample_is_read_and_verified() -> None:
    read = stun.parse(SAMPLE_REQUEST)
    assert read.kind == stun.BINDING_REQUEST
    assert read.transaction_id.hex() == "b7e7a701bc34d686fa87dfae"
    assert read.attributes[stun.USERNAME] == b"evtj:h6vY"
    assert read.attributes[stun.ICE_CONTROLLED].hex() == "932ff9b151263b36"
    assert read.signed
    assert read.verify(SAMPLE_PASSWORD)
    assert not read.verify(SAMPLE_PASSWORD + "x")


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        pytest.param(b"", Reject.NOT_STUN, id="empty"),
        pytest.param(message(b"")[:19], Reject.NOT_STUN, id="short_header"),
        pytest.param(message(b"", cookie=1), Reject.NOT_STUN, id="cookie"),
        pytest.param(message(b"", 0x0011), Reject.NOT_A_CHECK, id="indication"),
        pytest.param(message(b"", 0x0003), Reject.NOT_A_CHECK, id="allocate"),
        pytest.param(message(b"", 0x8001), Reject.NOT_A_CHECK, id="top_bits"),
        pytest.param(message(USERNAME)[:-4], Reject.MALFORMED, id="cut"),
        pytest.param(message(USERNAME) + bytes(4), Reject.MALFORMED, id="trailing"),
        pytest.param(message(b"\x80\x22\0\0\0\0"), Reject.MALFORMED, id="length_not_in_words"),
        pytest.param(message(bytes(1264)), Reject.MALFORMED, id="too_big"),
        pytest.param(message(b"\x80\x22\xff\xff"), Reject.MALFORMED, id="value_past_end"),
        pytest.param(message(b"\x80\x22\0\1"), Reject.MALFORMED, id="value_just_past_end"),
        pytest.param(message(b"\0\x24\0\3" + bytes(4)), Reject.MALFORMED, id="priority_of_3"),
        pytest.param(message(b"\0\x25\0\4" + bytes(4)), Reject.MALFORMED, id="use_candidate_of_4"),
        pytest.param(message(b"\0\x08\0\4" + bytes(4)), Reject.MALFORMED, id="integrity_of_4"),
        pytest.param(message(b"\x80\x28\0\3" + bytes(4)), Reject.MALFORMED, id="fingerprint_of_3"),
        pytest.param(message(b"\x80\x29\0\4" + bytes(4)), Reject.MALFORMED, id="role_of_4"),
        pytest.param(message(b"\0\x06\0\0"), Reject.MALFORMED, id="empty_username"),
        pytest.param(message(b"\0\x09\0\0"), Reject.MALFORMED, id="error_code_of_0"),
        pytest.param(message(FINGERPRINT), Reject.BAD_FINGERPRINT, id="fingerprint"),
        pytest.param(message(FINGERPRINT + USERNAME), Reject.MALFORMED, id="after_fingerprint"),
    ],
)
def test_rejects(datagram: bytes, reason: Reject) -> None:
    with pytest.raises(StunError) as caught:
        stun.parse(datagram)
    assert caught.value.reason is reason
    assert str(caught.value).startswith(f"{reason}: ")


def test_only_the_first_attribute_of_a_kind_counts() -> None:
    second = struct.pack("!HH4s", stun.USERNAME, 4, b"evil")
    assert stun.parse(message(USERNAME + second)).attributes[stun.USERNAME] == b"ab:c"


def test_attributes_behind_the_signature_do_not_count() -> None:
    read = stun.parse(message(INTEGRITY + USERNAME + USE_CANDIDATE))
    assert read.attributes.keys() == {stun.MESSAGE_INTEGRITY}


def test_an_unsigned_message_verifies_under_no_password() -> None:
    read = stun.parse(message(USERNAME))
    assert not read.signed
    assert not read.verify("")


def test_unknown_attributes_and_odd_padding_are_passed_over() -> None:
    odd = struct.pack("!HH3sB", 0xC001, 3, b"abc", 0xFF)
    assert stun.parse(message(odd + USERNAME)).attributes[stun.USERNAME] == b"ab:c"


@given(st.binary(max_size=200))
def test_any_bytes_raise_stun_error_or_nothing(datagram: bytes) -> None:
    for candidate in (datagram, message(datagram), message(datagram + bytes(-len(datagram) % 4))):
        with contextlib.suppress(StunError):
            stun.parse(candidate)


@given(st.data())
def test_a_check_with_changed_bytes_never_verifies(data: st.DataObject) -> None:
    datagram = bytearray(check(nominate=True, transaction_id=b"t" * 12))
    at = data.draw(st.integers(0, len(datagram) - 9))  # the fingerprint is not signed
    datagram[at] ^= data.draw(st.integers(1, 255))
    try:
        read = stun.parse(bytes(datagram))
    except StunError:
        return
    assert not read.verify(OURS.pwd)


@pytest.mark.parametrize("host", ["198.51.100.7", "2001:db8::7"])
def test_success_says_where_the_check_came_from(host: str) -> None:
    request = stun.parse(check(transaction_id=b"abcdefghijkl"))
    read = oracle.parse_message(stun.write_success(request, (host, 40000), OURS.pwd))
    assert read.message_class is oracle.Class.RESPONSE
    assert read.transaction_id == b"abcdefghijkl"
    assert read.attributes["XOR-MAPPED-ADDRESS"] == (host, 40000)
    assert read.check_message_integrity(OURS.pwd.encode())
    assert "FINGERPRINT" in read.attributes


def test_role_conflict_is_signed() -> None:
    request = stun.parse(check(transaction_id=b"abcdefghijkl"))
    read = oracle.parse_message(stun.write_role_conflict(request, OURS.pwd))
    assert read.error_code == 487
    assert read.transaction_id == b"abcdefghijkl"
    assert read.check_message_integrity(OURS.pwd.encode())
    assert "FINGERPRINT" in read.attributes


def test_our_check_is_one_of_a_controlled_agent() -> None:
    read = oracle.parse_message(stun.write_check(b"abcdefghijkl", OURS, bytes(7) + b"\x09"))
    assert read.attributes["USERNAME"] == f"{OURS.remote_ufrag}:{OURS.ufrag}"
    assert read.attributes["ICE-CONTROLLED"] == 9
    assert read.attributes["PRIORITY"] >> 24 == 110  # peer-reflexive
    assert read.check_message_integrity(OURS.remote_pwd.encode())
    assert "FINGERPRINT" in read.attributes
    assert "USE-CANDIDATE" not in read.attributes


def test_an_answer_of_the_client_is_read() -> None:
    ours = stun.write_check(b"abcdefghijkl", OURS, bytes(8))
    read = stun.parse(answer(ours))
    assert read.kind == stun.BINDING_SUCCESS
    assert read.verify(OURS.remote_pwd)
    assert stun.parse(answer(ours, error=401)).kind == stun.BINDING_ERROR


def test_passwords_are_not_in_the_repr() -> None:
    assert OURS.pwd not in repr(OURS)
    assert OURS.remote_pwd not in repr(OURS)
    assert CLIENT[0] not in repr(OURS)
