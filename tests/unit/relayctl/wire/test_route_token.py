import base64
import contextlib
import ipaddress
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.wire.route_token import (
    Key,
    KeyFileError,
    Reject,
    Route,
    TokenError,
    mint,
    open_token,
    parse_keys,
    render_key,
    tag_bits,
)

VECTORS = json.loads(Path("tests/vectors/route_token.json").read_text())
KEY = Key(VECTORS["key"]["id"], bytes.fromhex(VECTORS["key"]["secret"]))
KEYS = {KEY.id: KEY}
ROUTES = st.builds(
    Route,
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**16 - 1),
    st.binary(min_size=3, max_size=3),
)


@pytest.mark.parametrize("vector", VECTORS["tokens"], ids=lambda v: v["token"])
def test_vectors(vector: dict[str, str]) -> None:
    host = int(ipaddress.IPv4Address(vector["host"]))
    nonce = bytes.fromhex(vector["nonce"])
    route = Route(int(vector["cluster"]), host, int(vector["port"]), nonce)
    assert mint(KEY, route) == vector["token"]
    assert open_token(KEYS, vector["token"].encode()) == route


@given(ROUTES)
def test_opens_what_it_minted(route: Route) -> None:
    assert open_token(KEYS, mint(KEY, route).encode()) == route


@given(ROUTES, st.integers(0, 143))
def test_one_flipped_bit_never_opens(route: Route, bit: int) -> None:
    import base64

    raw = bytearray(base64.b64decode(mint(KEY, route)))
    raw[bit // 8] ^= 1 << bit % 8
    with pytest.raises(TokenError):
        open_token(KEYS, base64.b64encode(raw))


@given(st.binary() | st.from_regex(r"[A-Za-z0-9+/]{24}", fullmatch=True).map(str.encode))
def test_raises_only_token_error(token: bytes) -> None:
    with contextlib.suppress(TokenError):
        open_token(KEYS, token)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        pytest.param(b"", Reject.MALFORMED, id="empty"),
        pytest.param(b"abcd", Reject.MALFORMED, id="four"),
        pytest.param(b"A" * 256, Reject.MALFORMED, id="long"),
        pytest.param(b"IWwJ+/iUTKZerg88cJwZO0e-", Reject.MALFORMED, id="alphabet"),
        pytest.param(b"A" * 24, Reject.MALFORMED, id="version_0"),
        pytest.param(b"IWwJ+/iUTKZerg88cJwZO0e0=", Reject.MALFORMED, id="padded"),
        pytest.param(b"IgwJ+/iUTKZerg88cJwZO0e0", Reject.UNKNOWN_KEY, id="key_2"),
        pytest.param(b"IWwJ+/iUTKZerg88cJwZO0e1", Reject.FORGED, id="nonce"),
    ],
)
def test_rejects(token: bytes, reason: Reject) -> None:
    with pytest.raises(TokenError) as caught:
        open_token(KEYS, token)
    assert caught.value.reason is reason


def test_other_secret_does_not_open() -> None:
    token = mint(Key(1, bytes(32)), Route(7, 1, 2, bytes(3)))
    with pytest.raises(TokenError, match="forged"):
        open_token(KEYS, token.encode())


def test_key_file_round_trip() -> None:
    other = Key(31, bytes(range(32, 64)))
    text = f"# made on Monday\n{render_key(KEY)}\n\n{render_key(other)}  # next\n"
    assert parse_keys(text) == {1: KEY, 31: other}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("# only this", "no key in it"),
        ("1", "line 1: 1 words"),
        ("\n32 " + "00" * 32, "line 2: key id '32'"),
        ("x " + "00" * 32, "key id 'x'"),
        ("1 0011", "64 hex digits"),
        ("1 " + "zz" * 32, "64 hex digits"),
        (f"1 {'00' * 32}\n1 {'00' * 32}", "stands twice"),
    ],
)
def test_key_file_faults_name_the_line(text: str, complaint: str) -> None:
    with pytest.raises(KeyFileError, match=complaint):
        parse_keys(text)


def test_secret_is_not_shown() -> None:
    assert KEY.secret.hex() not in repr(KEY)
    assert str(KEY.secret) not in repr(KEY)
    with pytest.raises(KeyFileError) as caught:
        parse_keys("1 c0ffee")
    assert "c0ffee" not in str(caught.value)


CHARACTERS = st.sampled_from([b"A", b"z", b"+", b"/", b"=", b"-", b"\n", b"\xff"])


@given(st.lists(CHARACTERS, min_size=22, max_size=26).map(b"".join))
def test_only_24_characters_of_the_alphabet_are_looked_at(text: bytes) -> None:
    with pytest.raises(TokenError) as caught:
        open_token(KEYS, text)
    if not re.fullmatch(rb"[A-Za-z0-9+/]{24}", text):
        assert caught.value.reason is Reject.MALFORMED


@pytest.mark.parametrize("text", [b"I" * 22 + b"==", b"I" * 23 + b"=", b"I" * 20, b"I" * 28, b""])
def test_padding_is_no_part_of_a_token(text: bytes) -> None:
    with pytest.raises(TokenError) as caught:
        open_token(KEYS, text)
    assert caught.value.reason is Reject.MALFORMED


def test_tag_bits_are_the_first_two_bytes_of_the_tag() -> None:
    token = mint(KEY, Route(7, 1, 5000, b"abc")).encode()
    raw = base64.b64decode(token)
    assert tag_bits(token) == int.from_bytes(raw[1:3], "little")
