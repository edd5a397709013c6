import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.flow import (
    CLIENT_IDLE,
    CONFIRMED,
    ENDPOINT_IDLE,
    NEW_LIFE,
    Expiry,
    Flow,
    FlowKey,
    State,
    expiry,
    idle,
    pack_flow,
    units,
    unpack_flow,
)
from relayctl.wire.address import pack, unpack_host, widened

U8, U16, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64))
V4 = st.ip_addresses(v=4).map(str)
V6 = st.binary(min_size=16, max_size=16).map(unpack_host)
ADDRESSES = st.tuples(V4, U16)
CLIENTS = st.tuples(V4 | V6, U16)
PREFIXES = {8: bytes.fromhex("fd0000020000000000000000")}
FLOWS = st.builds(
    Flow,
    endpoint=ADDRESSES,
    cluster=st.integers(9, 65535),
    sport=U16,
    token=st.binary(min_size=8, max_size=8),
    nexthop_in=U16,
    nexthop_out=U16,
    back=U8,
    flags=U8,
    seen_up=U32,
    seen_down=U32,
    ssrc=U32,
    contended=U32,
    packets_up=U32,
    packets_down=U32,
    born=U32,
    answers=U32,
    bytes_up=U64,
    bytes_down=U64,
)
NEW = Flow(("10.2.0.2", 5000), 7, 5100, born=100)
OLD = Flow(("10.2.0.2", 5000), 7, 5100, flags=CONFIRMED, born=100, seen_up=200, seen_down=200)


@given(FLOWS)
def test_flow_round_trip(flow: Flow) -> None:
    assert unpack_flow(pack_flow(flow), PREFIXES) == flow


@given(U32)
def test_the_cluster_gives_an_ipv6_endpoint_its_prefix(host: int) -> None:
    endpoint = unpack_host(PREFIXES[8] + host.to_bytes(4, "big")), 5000
    flow = Flow(endpoint, 8, 5100)
    assert unpack_flow(pack_flow(flow), PREFIXES) == flow


@given(CLIENTS, U16)
def test_key_round_trip(client: tuple[str, int], vip: int) -> None:
    key = FlowKey(client, vip)
    assert (key.client, key.vip) == (client, vip)
    assert FlowKey.of(key.packed_client, vip) == FlowKey.read(bytes(key)) == key
    assert key.is_v6 is (":" in client[0])
    assert pack((unpack_host(widened(key.host)), client[1])) == key.packed_client
    assert repr(key) == f"FlowKey({client}, {vip})"


def test_key_bytes_stand_as_on_the_wire() -> None:
    assert FlowKey(("10.1.0.2", 0x9C40), 1).hex() == "0a0100029c400100"
    key = FlowKey(("2001:db8::2", 0x9C40), 1)
    assert key.hex() == "20010db80000000000000000000000029c40010000000000"


def test_state_is_the_confirmed_flag() -> None:
    assert NEW.state is State.NEW
    assert OLD.state is State.CONFIRMED


@pytest.mark.parametrize(
    ("flow", "now", "expected"),
    [
        pytest.param(NEW, 100 + NEW_LIFE, None, id="new_lives"),
        pytest.param(NEW, 101 + NEW_LIFE, Expiry.UNCONFIRMED, id="new_dies"),
        pytest.param(OLD, 200 + ENDPOINT_IDLE, None, id="lives"),
        pytest.param(OLD, 201 + ENDPOINT_IDLE, Expiry.ENDPOINT_SILENT, id="endpoint_silent"),
        pytest.param(OLD, 201 + CLIENT_IDLE, Expiry.CLIENT_SILENT, id="client_silent"),
        pytest.param(OLD, 199, None, id="stamp_ahead_of_now"),
    ],
)
def test_expiry(flow: Flow, now: int, expected: Expiry | None) -> None:
    assert expiry(flow, now) is expected


def test_idle_counts_from_the_last_client_packet() -> None:
    assert idle(OLD, 203) == 3
    assert idle(NEW, 101) == 1


def test_units_are_nanoseconds_shifted_by_30() -> None:
    assert units((5 << 30) + 7) == 5
