import pytest

from relayctl.datapath.base import Nexthop
from relayctl.flow import CONFIRMED, Flow, FlowKey
from relayctl.inspect.pin_reader import PinReader
from relayctl.inspect.records import ReadError
from relayctl.reason import Reason
from tests.unit.relayctl.inspect.pins import pinned
from tests.unit.relayctl.memory_datapath import MemoryDatapath

CLIENT = ("198.51.100.7", 40000)
FLOW = Flow(
    endpoint=("10.2.0.2", 5000), cluster=7, sport=5103, nexthop_in=1, nexthop_out=1, born=95
)


def datapath() -> MemoryDatapath:
    made = MemoryDatapath(capacity=1024)
    made.flows.install(FlowKey(CLIENT, 1), FLOW)
    made.flows.install(
        FlowKey(CLIENT, 2),
        Flow(endpoint=("10.2.0.3", 5000), cluster=7, sport=5103, flags=CONFIRMED, born=90),
    )
    made.write_nexthop(1, Nexthop(port=2, gateway="10.2.0.2", valid=True))
    made.write_slow_reasons({Reason.SLOW_INSTALLED: 2})
    made.beat(98)
    return made


def reader(made: MemoryDatapath, attached: frozenset[int] = frozenset({11, 12})) -> PinReader:
    return PinReader("relay-a", pinned(made, attached), lambda: 100)


def test_status() -> None:
    found = reader(datapath()).status()
    assert found.pop("kernel")["flows"]["v4"] == {"new": 1, "confirmed": 1, "max": 1000}
    assert found == {
        "instance": "relay-a",
        "running": False,
        "datapath": "xdp-native",
        "packet_process_silent_s": 2.1,
        "vips": [{"id": 1, "public": "203.0.113.10:3478"}],
        "interfaces": [
            {"name": "outer0", "role": "outer"},
            {"name": "eth0.20", "role": "inner"},
        ],
        "flows": {"new": 1, "confirmed": 1, "max": 1024},
        "ready": False,
        "not_ready": ["the daemon is not running"],
        "reasons": {"slow_installed": 2},
    }


def test_what_the_kernel_holds() -> None:
    made = datapath()
    made.flows.install(FlowKey(("2001:db8::1", 40000), 1), FLOW)
    found = reader(made, attached=frozenset({11})).status()["kernel"]
    assert found.pop("memory_mb") > 0.1
    assert [each["mode"] for each in found.pop("interfaces")] == ["native", None]
    assert found == {
        "layout": 2,
        "program": 71,
        "instructions": 4711,
        "keys": [1, 2],
        "flows": {
            "v4": {"new": 1, "confirmed": 1, "max": 1000},
            "v6": {"new": 1, "confirmed": 0, "max": 24},
        },
    }


def test_census() -> None:
    assert reader(datapath()).census().clusters == {7: 2}


def test_flows() -> None:
    first, second = reader(datapath()).flows()
    assert (first["vip"], first["path"], first["age_s"]) == ("203.0.113.10:3478", "kernel", 5.4)
    assert (second["vip"], second["path"]) == ("2", "user")


def test_flows_of_a_detached_program_are_not_in_the_kernel() -> None:
    assert {flow["path"] for flow in reader(datapath(), attached=frozenset()).flows()} == {"user"}


def test_flow_of_one_client() -> None:
    for vip in (None, "1", "203.0.113.10:3478"):
        [found] = reader(datapath()).flow(CLIENT, vip)
        assert found["endpoint"] == "10.2.0.2:5000"
    assert reader(datapath()).flow(CLIENT, "203.0.113.11:3478") == []
    assert reader(datapath()).flow(("198.51.100.8", 40000), None) == []


def test_nexthops_name_their_interface() -> None:
    [found] = reader(datapath()).nexthops()
    assert (found["index"], found["interface"]) == (1, "eth0.20")


def test_reasons() -> None:
    [found] = [each for each in reader(datapath()).reasons() if each["count"]]
    assert found["reason"] == "slow_installed"


def test_deletes_nothing() -> None:
    made = datapath()
    with pytest.raises(ReadError, match="only the daemon deletes"):
        reader(made).delete(CLIENT, None)
    assert len(list(made.flows.items())) == 2


def test_close_closes_the_maps() -> None:
    made = datapath()
    reader(made).close()
    assert made.closed
