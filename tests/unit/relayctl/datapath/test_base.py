from hypothesis import given
from hypothesis import strategies as st

from relayctl.datapath.base import (
    NEXTHOP,
    Nexthop,
    pack_nexthop,
    pack_route_key,
    unpack_nexthop,
)
from relayctl.wire.address import unpack_host
from relayctl.wire.route_token import Key

HOSTS = st.ip_addresses(v=4).map(str) | st.binary(min_size=16, max_size=16).map(unpack_host)
MACS = st.binary(min_size=6, max_size=6)
NEXTHOPS = st.builds(
    Nexthop,
    port=st.integers(1, 63),
    gateway=HOSTS,
    valid=st.booleans(),
    mtu=st.integers(576, 9000),
    source_mac=MACS,
    destination_mac=MACS,
    tags=st.tuples(st.integers(0, 4095), st.integers(0, 4095)),
)


@given(NEXTHOPS)
def test_round_trip(nexthop: Nexthop) -> None:
    assert unpack_nexthop(pack_nexthop(nexthop)) == nexthop


def test_an_unused_entry_is_zeros() -> None:
    assert pack_nexthop(None) == bytes(NEXTHOP.size)
    assert unpack_nexthop(bytes(NEXTHOP.size)) is None


def test_a_route_key_is_its_two_halves_and_a_mark() -> None:
    packed = pack_route_key(Key(1, bytes(range(32))))
    assert packed == bytes(range(32)) + b"\x01\0\0\0" + bytes(4)
    assert pack_route_key(None) == bytes(len(packed))
