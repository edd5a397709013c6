import asyncio
from collections.abc import AsyncIterator, Iterable
from ipaddress import IPv4Network
from typing import Any

import pytest

from relayctl.control.kernel_side import RoutePublisher, egress_ports, spec_of
from relayctl.control.link import Link, Vlan
from relayctl.control.netlink import Kernel
from relayctl.datapath.base import DatapathError
from relayctl.datapath.spec import Interface, Role, Spec
from relayctl.messages import PER_PART, Assembly, Message, RouteEntry, RoutesPart
from relayctl.routes import Hop, Route
from tests.unit.relayctl.packets import config


class FakeKernel(Kernel):
    """A host with `eth0`, and VLAN 10 on it."""

    async def links(self) -> AsyncIterator[Link]:
        yield Link(2, "eth0", bytes(6), True, 1500)
        yield Link(5, "eth0.10", bytes(6), True, 1500, Vlan(2, 10))

    async def addresses(self) -> list[str]:
        return ["10.3.0.2", "fe80::2", "10.2.0.1", "10.3.0.2"]


def spec(*names: str, **flags: Any) -> Spec:
    interfaces = [{"name": name, "role": "both"} for name in names]

    async def make() -> Spec:
        kernel = FakeKernel()
        try:
            return await spec_of(config(interface=interfaces, trust_l2=True, **flags), kernel)
        finally:
            kernel.close()

    return asyncio.run(make())


def test_a_spec_is_the_configuration_on_this_host() -> None:
    found = spec("eth0", "eth0.10", max_flows=4096, max_flows_v6=1024)
    assert found.interfaces == (
        Interface("eth0", 2, 1, Role.BOTH, 2, (0, 0)),
        Interface("eth0.10", 5, 2, Role.BOTH, 2, (10, 0)),
    )
    assert (found.inner_addresses, found.inner_port_base, found.inner_ports) == (
        ("10.2.0.1",),
        5100,
        16,
    )
    assert found.own == ("10.2.0.1", "10.3.0.2", "fe80::2")
    assert found.clusters[0].allow == (IPv4Network("10.2.0.0/24"),)
    assert (found.max_flows, found.max_flows_v6, found.allow_inner_clients) == (4096, 1024, False)
    assert found.vips[0].public == found.vips[0].local == ("203.0.113.10", 3478)


def test_an_interface_that_is_not_there() -> None:
    with pytest.raises(DatapathError, match=r"interface\.name = 'nothere0'.*ip link"):
        spec("nothere0")


def test_an_interface_keeps_its_port() -> None:
    assert egress_ports(["a", "b", "c"], {"b": 1, "gone": 2}) == {"a": 3, "b": 1, "c": 4}


def publish(routes: Iterable[Route], refuse_after: int = 99) -> tuple[bool, list[Message]]:
    sent: list[Message] = []

    def send(message: Message) -> bool:
        sent.append(message)
        return len(sent) <= refuse_after

    return RoutePublisher(send).publish(routes), sent


def test_routes_go_out_in_parts() -> None:
    routes = [
        Route(IPv4Network((number << 8, 24)), (Hop(1, "10.3.0.1", 1400), Hop(2, None)), 5)
        for number in range(PER_PART + 1)
    ]
    is_out, sent = publish(routes)
    assert is_out
    first, second = sent
    assert isinstance(first, RoutesPart)
    assert isinstance(second, RoutesPart)
    assert (first.part, first.parts, len(first.routes)) == (0, 2, PER_PART)
    hops = ((1, "10.3.0.1", 1400), (2, None, 1500))
    assert second == RoutesPart(1, 1, 2, (RouteEntry("0.1.0.0/24", hops, 5),))


def test_an_empty_table_is_news_too() -> None:
    assert publish([]) == (True, [RoutesPart(1, 0, 1, ())])


def test_a_part_that_found_the_pipe_full() -> None:
    assert publish([], refuse_after=0)[0] is False


def test_a_table_larger_than_the_pipe_arrives_whole_however_often_routes_change() -> None:
    """The pipe takes three messages between two looks at it, and the table has four."""
    tables = [
        [Route(IPv4Network((number << 8, 24)), (), version) for number in range(3 * PER_PART + 1)]
        for version in range(9)
    ]
    pipe: list[Message] = []

    def send(message: Message) -> bool:
        if len(pipe) == 3:
            return False
        pipe.append(message)
        return True

    publisher, assembly = RoutePublisher(send), Assembly[RouteEntry]()
    arrived = []
    for table in tables:
        publisher.publish(table)
        arrived += drained(pipe, assembly)
    while not publisher.resume():
        arrived += drained(pipe, assembly)
    arrived += drained(pipe, assembly)
    assert {len(table) for table in arrived} == {len(tables[0])}
    versions = [{entry.metric for entry in table} for table in arrived]
    assert all(len(each) == 1 for each in versions)
    assert versions[0] == {0}
    assert versions[-1] == {8}
    assert len(versions) > 2


def test_a_table_goes_out_once_to_each_packet_process() -> None:
    sent: list[Message] = []

    def send(message: Message) -> bool:
        sent.append(message)
        return True

    publisher = RoutePublisher(send)
    route = Route(IPv4Network("10.0.0.0/8"), (Hop(1, "10.3.0.1"),))
    for routes in ([], [route], [route], []):
        assert publisher.publish(routes)
    assert [len(table) for table in drained(sent, Assembly())] == [0, 1, 0]
    publisher.forget()
    assert publisher.publish([])
    assert drained(sent, Assembly()) == [[]]


def test_a_table_under_way_to_a_dead_packet_process_is_begun_anew() -> None:
    pipe: list[Message] = []

    def send(message: Message) -> bool:
        pipe.append(message)
        return len(pipe) < 2

    table = [Route(IPv4Network((number << 8, 24)), (), 0) for number in range(2 * PER_PART)]
    publisher = RoutePublisher(send)
    assert not publisher.publish(table)
    pipe.clear()
    publisher.forget()
    publisher.publish(table)
    assert isinstance(pipe[0], RoutesPart)
    assert pipe[0].part == 0


def drained(pipe: list[Message], assembly: Assembly[RouteEntry]) -> list[list[RouteEntry]]:
    """Route tables that are whole now."""
    found = []
    for message in pipe:
        assert isinstance(message, RoutesPart)
        table = assembly.add(message.generation, message.part, message.parts, message.routes)
        if table is not None:
            found.append(table)
    pipe.clear()
    return found
