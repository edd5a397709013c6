import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.wire.stun import (
    BindingRequest,
    Reject,
    StunError,
    is_whole,
    parse_binding_request,
    token_of,
    transaction_of,
)

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


TOKEN = b"IWwJ+/iUTKZerg88cJwZO0e0"


def named(username: bytes) -> bytes:
    attribute = struct.pack("!HH", 0x0006, len(username)) + username
    return request(attribute + bytes(-len(username) % 4))


@pytest.mark.parametrize(
    ("datagram", "token"),
    [
        pytest.param(named(TOKEN + b":h6vY"), TOKEN, id="token"),
        pytest.param(named(TOKEN + b":"), TOKEN, id="nothing_behind"),
        pytest.param(named(b"!" * 24 + b":"), b"!" * 24, id="any_characters"),
        pytest.param(named(b"a:" * 12 + b":"), b"a:" * 12, id="an_earlier_colon"),
        pytest.param(named(TOKEN), None, id="no_colon"),
        pytest.param(named(TOKEN[:-1] + b":h6vY"), None, id="short"),
        pytest.param(named(TOKEN + b"A:h6vY"), None, id="long"),
        pytest.param(request(b""), None, id="no_attribute"),
        pytest.param(request(b"\0\6\0\xff"), None, id="value_past_end"),
        pytest.param(request(PRIORITY * 9) + named(TOKEN + b":")[20:], None, id="ninth"),
    ],
)
def test_what_stands_where_a_token_would(datagram: bytes, token: bytes | None) -> None:
    assert token_of(datagram) == token


def test_whole_messages() -> None:
    whole = request(USERNAME)
    assert is_whole(whole, 0x0001)
    assert is_whole(request(b""), 0x0001)
    assert not is_whole(request(b"odd"), 0x0001)
    for broken in (b"", whole[:19], whole[:-4], whole + bytes(4), whole[:-1], b"\1" + whole[1:]):
        assert not is_whole(broken, 0x0001)
    assert not is_whole(whole[:7] + b"\x43" + whole[8:], 0x0001)
    assert transaction_of(RFC5769_SAMPLE_REQUEST) == RFC5769_SAMPLE_REQUEST[8:20]


@given(st.binary() | st.binary().map(lambda b: request(b + bytes(-len(b) % 4))))
def test_reads_any_request(datagram: bytes) -> None:
    if is_whole(datagram, 0x0001):
        token = token_of(datagram)
        assert token is None or len(token) == 24
