import itertools

import pytest

from relayctl.control.flow_slice import KEYS, VALUE, FlowSlice, slices
from relayctl.flow import (
    CLIENT_IDLE,
    CONFIRMED,
    ENDPOINT_IDLE,
    KEY_V4,
    KEY_V6,
    NEW_LIFE,
    Flow,
    FlowKey,
    expiry,
    pack_flow,
)
from relayctl.flow import VALUE as PACKED

FULL = Flow(
    endpoint=("10.2.0.2", 5001),
    cluster=0x0102,
    sport=0x1314,
    token=b"IWwJ+/iU",
    nexthop_in=0x0304,
    nexthop_out=0x0506,
    back=7,
    flags=CONFIRMED,
    seen_up=0x11223344,
    seen_down=0x21223344,
    ssrc=0x31223344,
    contended=0x41223344,
    packets_up=0x51223344,
    packets_down=0x61223344,
    born=0x71223344,
    answers=0x81223344,
    bytes_up=0x9122334455667788,
    bytes_down=0xA122334455667788,
)
KEY_4 = FlowKey(("198.51.100.7", 40000), 0x0201)
KEY_6 = FlowKey(("2001:db8::7", 40001), 0x0201)
NOW = 1000


def test_every_column_is_where_the_struct_has_it() -> None:
    assert VALUE.itemsize == PACKED.size
    assert (KEYS[4].itemsize, KEYS[6].itemsize) == (KEY_V4.size, KEY_V6.size)
    flows = FlowSlice(KEY_4, pack_flow(FULL))
    found = {name: flows.values[name][0] for name in VALUE.names or ()}
    expected = FULL._asdict()
    del expected["endpoint"]
    assert found == expected | {"host": 0x0A020002, "port": 5001}


def test_keys_of_both_families() -> None:
    for key, host in ((KEY_4, 0xC6336407), (KEY_6, bytes.fromhex("20010db8" + "0" * 23 + "7"))):
        flows = FlowSlice(key * 3, pack_flow(FULL) * 3)
        assert len(flows) == 3
        assert flows.key(2) == key
        assert flows.keys["host"][1] == host
        assert (flows.keys["port"][1], flows.keys["vip"][1]) == (key.client[1], 0x0201)


AGES = [-1, 0, *(age + d for age in (NEW_LIFE, ENDPOINT_IDLE, CLIENT_IDLE) for d in (0, 1))]
STAMPS = [0, *(NOW - age for age in AGES)]


@pytest.mark.parametrize("now", [NOW, 0, 2**32 - 1])
def test_over_agrees_with_expiry(now: int) -> None:
    flows = [
        FULL._replace(flags=flags, born=born, seen_up=up, seen_down=down)
        for flags, born, up, down in itertools.product((0, CONFIRMED), STAMPS, STAMPS, STAMPS)
    ]
    keys, values = KEY_4 * len(flows), b"".join(map(pack_flow, flows))
    expected = [expiry(flow, now) is not None for flow in flows]
    assert FlowSlice(keys, values).over(now).tolist() == expected


def test_small_batches_are_joined_by_family_and_none_is_lost() -> None:
    def batch(key: FlowKey, count: int) -> tuple[bytes, bytes]:
        return key * count, pack_flow(FULL) * count

    given = [batch(KEY_4, 1), batch(KEY_6, 2), batch(KEY_4, 3), batch(KEY_6, 9), batch(KEY_4, 1)]
    found = [FlowSlice(*each) for each in slices(given, size=4)]
    assert [(each.version, len(each)) for each in found] == [(4, 4), (6, 11), (4, 1)]
    assert list(slices([])) == []
