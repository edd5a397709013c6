import pytest

from relayctl.datapath.base import Datapath, Nexthop
from relayctl.flow import CONFIRMED, Flow, FlowKey
from relayctl.inspect.pin_reader import PinReader
from relayctl.inspect.pinned import Pinned
from relayctl.inspect.records import ReadError
from relayctl.reason import Reason
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
    made.write_nexthop(1, Nexthop(port=2, gateway="10.2.0.2", source="10.2.0.1", valid=True))
    made.write_slow_reasons({Reason.SLOW_INSTALLED: 2})
    made.beat(98)
    return made


def reader(made: Datapath, attached: tuple[str, ...] = ("outer0", "inner0")) -> PinReader:
    pinned = Pinned(made, {1: "203.0.113.10:3478"}, {2: "inner0"}, attached)
    return PinReader("relay-a", pinned, lambda: 100)


def test_status() -> None:
    assert reader(datapath()).status() == {
        "instance": "relay-a",
        "running": False,
        "datapath": "xdp-native",
        "packet_process_silent_s": 2.1,
        "vips": [{"id": 1, "public": "203.0.113.10:3478"}],
        "interfaces": [{"name": "outer0"}, {"name": "inner0"}],
        "flows": {"new": 1, "confirmed": 1, "max": 1024},
        "ready": False,
        "not_ready": ["the daemon is not running"],
        "reasons": {"slow_installed": 2},
    }


def test_flows() -> None:
    first, second = reader(datapath()).flows()
    assert (first["vip"], first["path"], first["age_s"]) == ("203.0.113.10:3478", "kernel", 5.4)
    assert (second["vip"], second["path"]) == ("2", "user")


def test_flows_of_a_detached_program_are_not_in_the_kernel() -> None:
    assert {flow["path"] for flow in reader(datapath(), attached=()).flows()} == {"user"}


def test_flow_of_one_client() -> None:
    assert len(reader(datapath()).flow(CLIENT, None)) == 2
    [found] = reader(datapath()).flow(CLIENT, "2")
    assert found["endpoint"] == "10.2.0.3:5000"
    assert reader(datapath()).flow(("198.51.100.8", 40000), None) == []


def test_nexthops_name_their_interface() -> None:
    [found] = reader(datapath()).nexthops()
    assert (found["index"], found["interface"]) == (1, "inner0")


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
