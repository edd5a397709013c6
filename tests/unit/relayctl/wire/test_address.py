import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.wire.address import (
    V4_SIZE,
    V6_SIZE,
    AddressError,
    compact,
    is_v6,
    pack,
    pack_host,
    parse,
    render,
    unpack,
    unpack_host,
    widened,
)

HOSTS = st.ip_addresses().map(lambda ip: unpack_host(pack_host(str(ip))))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("203.0.113.10:3478", ("203.0.113.10", 3478)),
        ("[2001:DB8::1]:3478", ("2001:db8::1", 3478)),
        ("[::ffff:10.2.0.2]:5000", ("10.2.0.2", 5000)),
    ],
)
def test_parse(text: str, address: tuple[str, int]) -> None:
    assert parse(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3478",
        "203.0.113.10",
        "203.0.113.10:",
        "203.0.113.10:0",
        "203.0.113.10:65536",
        "2001:db8::1:3478",
        "[203.0.113.10]:3478",
        "relay:3478",
        "203.0.113.10:\u0663",
    ],
)
def test_parse_names_what_it_refuses(text: str) -> None:
    with pytest.raises(AddressError) as caught:
        parse(text)
    assert repr(text) in str(caught.value)


@given(HOSTS, st.integers(1, 65535))
def test_render_is_the_inverse_of_parse(host: str, port: int) -> None:
    assert parse(render((host, port))) == (host, port)


def test_ipv4_is_packed_as_mapped() -> None:
    assert pack_host("10.2.0.2") == ipaddress.IPv6Address("::ffff:10.2.0.2").packed


@given(st.ip_addresses(v=4).map(str))
def test_ipv4_survives_packing(host: str) -> None:
    assert unpack_host(pack_host(host)) == host


@given(st.ip_addresses(v=6))
def test_ipv6_survives_packing(ip: ipaddress.IPv6Address) -> None:
    assert pack_host(unpack_host(ip.packed)) == ip.packed
    assert unpack_host(ip.packed) == str(ip.ipv4_mapped or ip)


@pytest.mark.parametrize(
    "text",
    ["", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.-4", "\u0661.2.3.4", "1.2.3. 4"],
)
def test_what_is_no_address_is_not_packed(text: str) -> None:
    with pytest.raises(ValueError, match=r"permitted|octets|empty"):
        pack_host(text)


@given(HOSTS, st.integers(0, 65535))
def test_packed_addresses(host: str, port: int) -> None:
    packed = pack((host, port))
    assert len(packed) == (V6_SIZE if is_v6(host) else V4_SIZE)
    assert packed == compact(host) + port.to_bytes(2, "big")
    assert widened(compact(host)) == pack_host(host)
    assert unpack(packed) == (host, port)


def test_ipv4_in_disguise_is_an_ipv6_address_until_people_read_it() -> None:
    packed = compact("::ffff:10.2.0.2")
    assert len(packed) == 16
    assert unpack(packed + bytes(2)) == ("10.2.0.2", 0)
