import socket
from collections.abc import Iterable
from ipaddress import IPv4Network

import pytest

from relayctl.control.kernel_side import RoutePublisher, spec_of
from relayctl.datapath.base import DatapathError
from relayctl.datapath.spec import Role
from relayctl.messages import PER_PART, Message, RouteEntry, RoutesPart
from relayctl.routes import Hop, Route
from tests.unit.relayctl.packets import config

LO = [{"name": "lo", "role": "both"}]


def test_a_spec_is_the_configuration() -> None:
    spec = spec_of(
        config(interface=LO, trust_l2=True, max_flows=4096), ["10.3.0.2", "10.2.0.1", "10.3.0.2"]
    )
    [interface] = spec.interfaces
    assert (interface.name, interface.ifindex) == ("lo", socket.if_nametoindex("lo"))
    assert (interface.port, interface.role) == (1, Role.BOTH)
    assert (spec.inner_address, spec.inner_port_base, spec.inner_ports) == ("10.2.0.1", 5100, 16)
    assert spec.own == ("10.2.0.1", "10.3.0.2")
    assert spec.allow == (IPv4Network("10.2.0.0/24"),)
    assert (spec.max_flows, spec.allow_inner_clients) == (4096, False)
    assert spec.vips[0].public == spec.vips[0].local == ("203.0.113.10", 3478)


def test_an_interface_that_is_not_there() -> None:
    with pytest.raises(DatapathError, match=r"interface\.name = 'nothere0'.*ip link"):
        spec_of(config(interface=[{"name": "nothere0", "role": "both"}], trust_l2=True), [])


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
