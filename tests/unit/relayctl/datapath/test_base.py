from hypothesis import given
from hypothesis import strategies as st

from relayctl.datapath.base import NEXTHOP, Nexthop, pack_nexthop, unpack_nexthop

HOSTS = st.ip_addresses(v=4).map(str)
MACS = st.binary(min_size=6, max_size=6)
NEXTHOPS = st.builds(
    Nexthop,
    port=st.integers(1, 63),
    gateway=HOSTS,
    source=HOSTS,
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
