import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.wire import address
from relayctl.wire.spp import Header, Reject, SppError, decode, encode, inner_port, split

HEADER = Header(("10.1.0.2", 40000), ("203.0.113.10", 3478))
BYTES = bytes.fromhex(
    "56ec00000000000000000000ffff0a01000200000000000000000000ffffcb00710a9c400d96"
)
HOSTS = st.ip_addresses().map(lambda ip: address.unpack_host(address.pack_host(str(ip))))
ADDRESSES = st.tuples(HOSTS, st.integers(0, 65535))


def test_known_header() -> None:
    assert encode(HEADER) == BYTES
    assert decode(BYTES) == HEADER


@given(ADDRESSES, ADDRESSES)
def test_decode_is_the_inverse_of_encode(client: address.Address, proxy: address.Address) -> None:
    assert decode(encode(Header(client, proxy))) == Header(client, proxy)


@pytest.mark.parametrize(
    ("client", "proxy", "one"),
    [
        ("10.1.0.2", "203.0.113.10", True),
        ("2001:db8::7", "2001:db8::10", True),
        ("10.1.0.2", "2001:db8::10", False),
        ("2001:db8::7", "203.0.113.10", False),
    ],
)
def test_whether_client_and_proxy_are_of_one_family(client: str, proxy: str, one: bool) -> None:
    assert Header((client, 1), (proxy, 2)).is_of_one_family is one


def test_split() -> None:
    assert split(BYTES + b"\x80") == (BYTES, b"\x80")


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        pytest.param(b"", Reject.NOT_SPP, id="empty"),
        pytest.param(b"\x56", Reject.NOT_SPP, id="half_a_magic"),
        pytest.param(b"\x00\x01" + bytes(60), Reject.NOT_SPP, id="stun"),
        pytest.param(BYTES, Reject.TRUNCATED, id="no_payload"),
        pytest.param(BYTES[:20], Reject.TRUNCATED, id="cut"),
    ],
)
def test_split_rejects(datagram: bytes, reason: Reject) -> None:
    with pytest.raises(SppError) as caught:
        split(datagram)
    assert caught.value.reason is reason


@given(st.binary(max_size=80) | st.binary(max_size=80).map(lambda b: b"\x56\xec" + b))
def test_raises_only_spp_error(datagram: bytes) -> None:
    with contextlib.suppress(SppError):
        decode(split(datagram)[0])
    with contextlib.suppress(SppError):
        decode(datagram)


@pytest.mark.parametrize(
    "vector",
    json.loads(Path("tests/vectors/inner_port.json").read_text()),
    ids=lambda v: v["client"],
)
def test_inner_port_vectors(vector: dict[str, Any]) -> None:
    client = address.parse(vector["client"])
    assert inner_port(address.pack(client), vector["base"], vector["count"]) == vector["port"]


@pytest.mark.parametrize(
    "vector",
    json.loads(Path("tests/vectors/spp.json").read_text()),
    ids=lambda v: v["name"],
)
def test_vectors_shared_with_the_program(vector: dict[str, Any]) -> None:
    client, public = address.parse(vector["client"]), address.parse(vector["public"])
    assert encode(Header(client, public)).hex() == vector["header"]
    assert inner_port(address.pack(client)) == vector["inner_port"]


@given(ADDRESSES, st.sampled_from([1, 2, 16, 64]))
def test_inner_port_stays_in_its_range(client: address.Address, count: int) -> None:
    assert 5100 <= inner_port(address.pack(client), 5100, count) < 5100 + count
