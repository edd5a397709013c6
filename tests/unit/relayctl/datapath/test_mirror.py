import pytest

from relayctl.datapath.base import DatapathError
from relayctl.datapath.mirror import MirrorDatapath
from relayctl.flow import Flow, FlowKey, pack_flow
from relayctl.reason import Reason

KEYS = [FlowKey(("198.51.100.7", port), 1) for port in (40000, 40001)]
FLOW = Flow(("10.2.0.2", 5000), 7, 5107)


def mirror(is_heard: bool = True) -> tuple[MirrorDatapath, list[FlowKey]]:
    asked: list[FlowKey] = []

    def expire(key: FlowKey) -> bool:
        asked.append(key)
        return is_heard

    found = MirrorDatapath(1024, expire)
    found.flows.replace((key, FLOW) for key in KEYS)
    return found, asked


def test_a_copy_replaces_the_one_before() -> None:
    found, _ = mirror()
    found.flows.replace([(KEYS[0], FLOW)])
    assert list(found.flows.items()) == [(KEYS[0], FLOW)]
    assert found.flows.get(KEYS[1]) is None


def test_a_delete_is_a_command() -> None:
    found, asked = mirror()
    assert found.flows.delete(KEYS[0])
    assert not found.flows.delete(KEYS[0])
    assert asked == [KEYS[0]]
    assert found.flows.get(KEYS[0]) is None


def test_a_command_that_did_not_go_out_deletes_nothing() -> None:
    found, _ = mirror(is_heard=False)
    assert not found.flows.delete(KEYS[0])
    assert found.flows.get(KEYS[0]) == FLOW


def test_nothing_is_installed_here() -> None:
    found, _ = mirror()
    with pytest.raises(DatapathError):
        found.flows.install(KEYS[0], FLOW)


def test_heartbeat_and_reasons() -> None:
    found, _ = mirror()
    found.beat(17)
    found.write_slow_reasons({Reason.FORWARD: 3, Reason.SLOW_ORPHAN: 1})
    assert found.alive() == 17
    assert found.reasons() == {Reason.FORWARD: 3, Reason.SLOW_ORPHAN: 1}


def test_packed_like_a_map() -> None:
    found, _ = mirror()
    found.write_keys({})
    assert list(found.flows.batches()) == [(key, pack_flow(FLOW)) for key in KEYS]
