import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.wire.address import AddressError, pack_host, parse, render, unpack_host

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
