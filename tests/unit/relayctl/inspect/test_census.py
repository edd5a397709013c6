from relayctl.flow import CONFIRMED, Flow, FlowKey
from relayctl.inspect import records
from relayctl.inspect.census import Census, of_batches, of_records
from tests.unit.relayctl.inspect.pins import batches
from tests.unit.relayctl.memory_datapath import MemoryDatapath


def datapath() -> MemoryDatapath:
    """Two flows of IPv4 clients, three of IPv6 ones."""
    made = MemoryDatapath()
    for number, (host, cluster, flags) in enumerate(
        [
            ("198.51.100.7", 7, 0),
            ("198.51.100.8", 7, CONFIRMED),
            ("2001:db8::1", 65535, CONFIRMED),
            ("2001:db8::2", 65535, CONFIRMED),
            ("2001:db8::3", 256, 0),
        ]
    ):
        flow = Flow(endpoint=("10.2.0.2", 5000), cluster=cluster, sport=5100, flags=flags)
        made.flows.install(FlowKey((host, 40000 + number), 1), flow)
    return made


def judge(census: Census) -> None:
    assert census.total == 5
    assert census.flows["v4", "new"] == census.flows["v4", "confirmed"] == 1
    assert (census.flows["v6", "new"], census.flows["v6", "confirmed"]) == (1, 2)
    assert (census.of_state("new"), census.of_state("confirmed")) == (2, 3)
    assert census.clusters == {7: 2, 65535: 2, 256: 1}


def test_counts_packed_flows() -> None:
    judge(of_batches(batches(datapath())))


def test_counts_records_alike() -> None:
    flows = datapath().flows.items()
    judge(
        of_records(
            records.flow_record(key, flow, now=1, vips={}, nexthops={}, kernel=True)
            for key, flow in flows
        )
    )


def test_nobody() -> None:
    assert of_batches([]).total == 0
    assert of_batches([(b"", b"")]).total == 0
