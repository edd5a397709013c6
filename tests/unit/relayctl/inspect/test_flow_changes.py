import pytest

from relayctl.inspect.flow_changes import Change, changes
from relayctl.inspect.records import Record

KEY = ("198.51.100.7:40000", 1)
FLOW: Record = {"endpoint": "10.2.0.2:5000", "state": "new", "path": "user", "packets": 1}


@pytest.mark.parametrize(
    ("later", "change"),
    [
        ({"state": "confirmed"}, Change.CONFIRMED),
        ({"endpoint": "10.2.0.3:5000"}, Change.MOVED),
        ({"path": "kernel"}, Change.PATH),
    ],
)
def test_change(later: Record, change: Change) -> None:
    now = {**FLOW, **later}
    assert list(changes({KEY: FLOW}, {KEY: now})) == [(change, now)]


def test_flows_of_the_first_look_are_known() -> None:
    assert list(changes(None, {KEY: FLOW})) == [(Change.KNOWN, FLOW)]


def test_new_flow() -> None:
    assert list(changes({}, {KEY: FLOW})) == [(Change.NEW, FLOW)]


def test_gone_flow_is_told_as_it_was() -> None:
    assert list(changes({KEY: FLOW}, {})) == [(Change.GONE, FLOW)]


def test_counters_are_no_change() -> None:
    assert list(changes({KEY: FLOW}, {KEY: {**FLOW, "packets": 2}})) == []


def test_same_client_at_two_vips_is_two_flows() -> None:
    other = (KEY[0], 2)
    assert list(changes({KEY: FLOW}, {KEY: FLOW, other: FLOW})) == [(Change.NEW, FLOW)]
