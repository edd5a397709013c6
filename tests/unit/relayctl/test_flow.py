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
    pack_key,
    units,
    unpack_flow,
    unpack_key,
)

U8, U16, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64))
ADDRESSES = st.tuples(st.ip_addresses(v=4).map(str), U16)
FLOWS = st.builds(
    Flow,
    endpoint=ADDRESSES,
    cluster=U16,
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
    bytes_up=U64,
    bytes_down=U64,
)
NEW = Flow(("10.2.0.2", 5000), 7, 5100, born=100)
OLD = Flow(("10.2.0.2", 5000), 7, 5100, flags=CONFIRMED, born=100, seen_up=200, seen_down=200)


@given(FLOWS)
def test_flow_round_trip(flow: Flow) -> None:
    assert unpack_flow(pack_flow(flow)) == flow


@given(ADDRESSES, U16)
def test_key_round_trip(client: tuple[str, int], vip: int) -> None:
    assert unpack_key(pack_key(FlowKey(client, vip))) == FlowKey(client, vip)


def test_key_bytes_stand_as_on_the_wire() -> None:
    assert pack_key(FlowKey(("10.1.0.2", 0x9C40), 1)).hex() == "0a0100029c400100"


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
