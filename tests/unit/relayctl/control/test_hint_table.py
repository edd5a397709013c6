from collections.abc import Iterable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from relayctl.control.flow_slice import Column, FlowSlice
from relayctl.control.hint_table import NONE, HintTable, changed, difference, hints
from relayctl.flow import CONFIRMED, Flow, FlowKey, pack_flow

V4 = FlowKey(("198.51.100.7", 40000), 256)
V6 = FlowKey(("2001:db8::", 40000), 1)


def see(table: HintTable, key: FlowKey, **fields: int) -> None:
    flow = Flow(("10.2.0.2", 5000), 7, 5107, **{"flags": CONFIRMED, **fields})  # type: ignore[arg-type]
    flows = FlowSlice(key, pack_flow(flow))
    table.see(flows, np.array([True]))


def result(table: HintTable) -> dict[int, FlowKey]:
    return dict(hints(table.result()))


def test_keys_of_both_families_come_back() -> None:
    table = HintTable()
    see(table, V4, ssrc=5)
    see(table, V6, ssrc=0x80000000)
    assert result(table) == {5: V4, 0x80000000: V6}


def test_the_newest_flow_of_an_ssrc_wins() -> None:
    for newest, *borns in ((V6, 9, 10), (V4, 10, 9)):
        table = HintTable()
        for key, born in zip((V4, V6), borns, strict=True):
            see(table, key, ssrc=5, born=born)
        assert result(table) == {5: newest}


def test_the_last_of_a_full_table_may_still_be_renewed() -> None:
    table = HintTable(capacity=1)
    see(table, V4, ssrc=5, born=1)
    see(table, V4, ssrc=6, born=1)
    see(table, V6, ssrc=5, born=9)
    assert result(table) == {5: V6}


def test_only_confirmed_flows_with_an_ssrc_that_are_still_there_give_hints() -> None:
    table = HintTable()
    see(table, V4, ssrc=5, flags=0)
    see(table, V4, ssrc=0)
    flow = Flow(("10.2.0.2", 5000), 7, 5107, ssrc=5, flags=CONFIRMED)
    table.see(FlowSlice(V4, pack_flow(flow)), np.array([False]))
    assert result(table) == {}


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 9)), max_size=60))
@settings(deadline=None)
def test_a_full_table_holds_the_smallest_ones(seen: list[tuple[int, int]]) -> None:
    table = HintTable(capacity=8)
    for number, (ssrc, born) in enumerate(seen):
        see(table, FlowKey(V4.client, number), ssrc=ssrc, born=born)
    found = result(table)
    assert sorted(found) == sorted({ssrc for ssrc, _ in seen})[:8]
    for ssrc, key in found.items():
        assert seen[key.vip] == (ssrc, _newest(seen, ssrc))


def _newest(seen: Iterable[tuple[int, int]], ssrc: int) -> int:
    return max(born for each, born in seen if each == ssrc)


FEW = st.dictionaries(st.integers(1, 12), st.integers(0, 3), max_size=8)


def rows_of(hints: dict[int, int]) -> Column:
    """Hints of these SSRCs to a flow of these VIP ids."""
    table = HintTable()
    for ssrc, vip in hints.items():
        see(table, FlowKey(V6.client, vip), ssrc=ssrc)
    return table.result()


@given(FEW, FEW)
@settings(deadline=None)
def test_a_difference_leads_from_old_to_new(old: dict[int, int], new: dict[int, int]) -> None:
    added, removed = difference(rows_of(old), rows_of(new))
    assert {ssrc for ssrc, _ in hints(removed)} == old.keys() - new.keys()
    assert {(ssrc, key.vip) for ssrc, key in hints(added)} == new.items() - old.items()
    assert hints(changed(rows_of(old), added, removed)) == hints(rows_of(new))
    assert len(changed(rows_of(old), NONE, NONE)) == len(old)
