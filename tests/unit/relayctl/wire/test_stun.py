import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.wire.stun import BindingRequest, Reject, StunError, parse_binding_request

RFC5769_SAMPLE_REQUEST = bytes.fromhex(  # section 2.1
    "000100582112a442b7e7a701bc34d686fa87dfae802200105354554e20746573"
    "7420636c69656e74002400046e0001ff80290008932ff9b151263b3600060009"
    "6576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249"
    "c1b571a280280004e57a3bcf"
)
USERNAME = struct.pack("!HH", 0x0006, 9) + b"evtj:h6vY" + bytes(3)
INTEGRITY = struct.pack("!HH", 0x0008, 20) + bytes(20)
PRIORITY = struct.pack("!HHI", 0x0024, 4, 1)


def request(attributes: bytes, kind: int = 0x0001) -> bytes:
    return struct.pack("!HHI12x", kind, len(attributes), 0x2112A442) + attributes


def test_rfc5769_sample_request() -> None:
    assert parse_binding_request(RFC5769_SAMPLE_REQUEST) == BindingRequest(b"evtj", b"h6vY")


def test_ufrags_of_any_legal_length() -> None:
    for length in (4, 24, 256):
        name = b"a" * length + b":" + b"b" * 4
        attribute = struct.pack("!HH", 6, len(name)) + name + bytes(-len(name) % 4)
        assert parse_binding_request(request(attribute)).local_ufrag == b"a" * length


def test_username_may_stand_behind_eight_attributes() -> None:
    assert parse_binding_request(request(PRIORITY * 8 + USERNAME)).local_ufrag == b"evtj"


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        pytest.param(b"", Reject.TRUNCATED, id="empty"),
        pytest.param(request(USERNAME)[:19], Reject.TRUNCATED, id="no_header"),
        pytest.param(request(USERNAME, 0x0101), Reject.NOT_BINDING_REQUEST, id="response"),
        pytest.param(
            request(USERNAME).replace(b"\x21\x12", b"\x21\x13"),
            Reject.NOT_BINDING_REQUEST,
            id="cookie",
        ),
        pytest.param(request(USERNAME)[:-4], Reject.TRUNCATED, id="cut_short"),
        pytest.param(request(USERNAME) + b"\0", Reject.TRUNCATED, id="trailing"),
        pytest.param(request(b"\0\6\0\xff"), Reject.TRUNCATED, id="value_past_end"),
        pytest.param(request(b"\0\6\xff\xff"), Reject.TRUNCATED, id="huge_value"),
        pytest.param(request(INTEGRITY + USERNAME), Reject.NO_USERNAME, id="unsigned_username"),
        pytest.param(request(PRIORITY), Reject.NO_USERNAME, id="no_username"),
        pytest.param(request(PRIORITY * 9 + USERNAME), Reject.NO_USERNAME, id="ninth"),
        pytest.param(
            request(struct.pack("!HH", 0x8022, 1000) + bytes(1000) + USERNAME),
            Reject.NO_USERNAME,
            id="beyond_1024",
        ),
        pytest.param(request(USERNAME.replace(b":", b"-")), Reject.BAD_USERNAME, id="no_colon"),
        pytest.param(request(USERNAME.replace(b"evtj", b"e:tj")), Reject.BAD_USERNAME, id="short"),
    ],
)
def test_rejects(datagram: bytes, reason: Reject) -> None:
    with pytest.raises(StunError) as caught:
        parse_binding_request(datagram)
    assert caught.value.reason is reason


@given(st.binary() | st.binary().map(lambda b: request(b + bytes(-len(b) % 4))))
def test_raises_only_stun_error(datagram: bytes) -> None:
    with contextlib.suppress(StunError):
        parse_binding_request(datagram)
