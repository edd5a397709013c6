"""The loop between real sockets on loopback; both datapaths, the kernel's part in memory."""

import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relayctl.channel import Channel
from relayctl.config import RelayConfig
from relayctl.datapath.base import NEVER, Datapath
from relayctl.datapath.socket import SocketDatapath
from relayctl.flow import Flow, FlowKey
from relayctl.messages import FlowsPart, Heartbeat, Message, RouteEntry, RoutesPart, decode_flow
from relayctl.packet.commands import PacketCommands
from relayctl.packet.process import PacketProcess
from relayctl.packet.sockets import PacketSocket
from relayctl.packet.view import PacketView, address_policy
from relayctl.reason import Reason
from relayctl.wire import spp
from relayctl.wire.address import Address
from tests.unit.relayctl.memory_datapath import MemoryDatapath
from tests.unit.relayctl.packet.test_sockets import LOOPBACK, free_port
from tests.unit.relayctl.packets import DTLS, KEY, binding_request, config, token


def local_config() -> RelayConfig:
    port = free_port()
    return config(
        datapath="socket",
        dev_local=True,
        inner_address=LOOPBACK,
        inner_ports=1,
        inner_port_base=free_port(),
        vip=[{"id": 1, "public": f"{LOOPBACK}:{port}"}],
        cluster=[{"id": 7, "allow": ["127.0.0.0/8"]}],
        interface=[],
    )


class Process:
    """A running packet process, with the control process's end of its channel."""

    def __init__(self, in_kernel: bool, capacity: int, interfaces: frozenset[int]) -> None:
        self.config = local_config()
        self.vip = self.config.vips[0].public
        sport = self.config.inner_port_base
        policy = address_policy(self.config)
        self.datapath: Datapath = (
            MemoryDatapath(capacity)
            if in_kernel
            else SocketDatapath(capacity, {self.vip: 1}, policy)
        )
        view_config = self.config.model_copy(update={"datapath": "xdp" if in_kernel else "socket"})
        self._ours, raw = Channel.pair()
        self.control = Channel(raw)
        view = PacketView(view_config, self.datapath, {1: KEY}, lambda *_: None)
        self._sockets = [
            PacketSocket(self.vip, vip=1, interfaces=True),
            PacketSocket((LOOPBACK, sport), sport=sport, interfaces=True),
        ]
        process = PacketProcess(
            view,
            self.datapath,
            self._sockets,
            self._ours,
            PacketCommands(view, self.datapath, self._ours, Path("/nonexistent")),
            outer_interfaces=interfaces,
            inner_interfaces=interfaces,
        )
        self._thread = threading.Thread(target=process.run)
        self._thread.start()

    def wait_for(self, wanted: Callable[[Message], bool]) -> Message:
        """The next message that is wanted."""
        for _ in range(100):
            select.select([self.control], [], [], 0.1)
            for message in self.control.receive():
                if wanted(message):
                    return message
        raise AssertionError("the message did not come")

    def count(self, reason: Reason, at_least: int = 1) -> int:
        """Packets of that reason, once there are so many."""
        for _ in range(30):
            found = self.datapath.reasons().get(reason, 0)
            if found >= at_least:
                return found
            self.wait_for(lambda message: isinstance(message, Heartbeat))
        return 0

    def stop(self) -> None:
        self.control.close()
        self._thread.join(timeout=3)
        assert not self._thread.is_alive(), "the process outlives its channel"
        self._ours.close()
        for sock in self._sockets:
            sock.close()


Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[Process] = []

    def start_one(
        in_kernel: bool = False, capacity: int = 16, interfaces: frozenset[int] = frozenset()
    ) -> Process:
        running.append(Process(in_kernel, capacity, interfaces))
        return running[-1]

    yield start_one
    for process in running:
        process.stop()


@pytest.fixture
def peers() -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as endpoint,
    ):
        for sock in (client, endpoint):
            sock.bind((LOOPBACK, 0))
            sock.settimeout(2)
        yield client, endpoint


Peers = tuple[socket.socket, socket.socket]


def first_packet(process: Process, peers: Peers) -> tuple[bytes, Address]:
    """Open a flow; the SPP header and the relay's address, as the endpoint sees them."""
    client, endpoint = peers
    request = binding_request(token(endpoint.getsockname()))
    client.sendto(request, process.vip)
    datagram, relay = endpoint.recvfrom(2000)
    header, payload = spp.split(datagram)
    assert payload == request
    assert spp.decode(header) == spp.Header(client.getsockname(), process.vip)
    return header, relay


def test_there_and_back(start: Start, peers: Peers) -> None:
    process = start()
    client, endpoint = peers
    header, relay = first_packet(process, peers)
    assert relay == (LOOPBACK, process.config.inner_port_base)
    endpoint.sendto(header + DTLS, relay)
    assert client.recvfrom(2000) == (DTLS, process.vip)
    client.sendto(DTLS, process.vip)
    assert endpoint.recvfrom(2000) == (header + DTLS, relay)
    part = process.wait_for(lambda message: isinstance(message, FlowsPart) and bool(message.flows))
    assert isinstance(part, FlowsPart)
    key, flow = decode_flow(part.flows[0])
    assert key == FlowKey(client.getsockname(), 1)
    assert flow.endpoint == endpoint.getsockname()
    expected = {Reason.PUNT_FIRST: 1, Reason.FORWARD: 1, Reason.RETURN: 1, Reason.SLOW_INSTALLED: 1}
    assert process.count(Reason.SLOW_INSTALLED) == 1
    assert process.datapath.reasons() == expected


def test_packets_wait_for_routes_where_the_kernel_forwards(start: Start, peers: Peers) -> None:
    process = start(in_kernel=True)
    client, endpoint = peers
    endpoint.settimeout(0.3)
    with pytest.raises(TimeoutError):
        first_packet(process, peers)
    process.control.send(RoutesPart(1, 0, 1, (RouteEntry("0.0.0.0/0", ((1, None, 1500),), 0),)))
    assert endpoint.recvfrom(2000)
    assert process.count(Reason.SLOW_INSTALLED) == 1
    flow = process.datapath.flows.get(FlowKey(client.getsockname(), 1))
    assert flow
    assert flow.nexthop_in == flow.nexthop_out != 0


def test_a_full_table_drops_and_keeps_what_it_has(start: Start, peers: Peers) -> None:
    process = start(capacity=1)
    old = FlowKey(("127.0.0.1", 9), 1)
    process.datapath.flows.install(old, Flow(("127.0.0.1", 5000), 7, 5100))
    peers[1].settimeout(0.2)
    with pytest.raises(TimeoutError):
        first_packet(process, peers)
    assert process.count(Reason.SLOW_TABLE_FULL) == 1
    assert process.datapath.flows.get(old)


def test_a_leg_comes_by_its_own_interfaces_only(start: Start, peers: Peers) -> None:
    process = start(interfaces=frozenset({99999}))
    peers[1].settimeout(0.2)
    with pytest.raises(TimeoutError):
        first_packet(process, peers)
    assert process.count(Reason.DROP_WRONG_SIDE) == 1


def test_the_last_beat_says_that_nobody_reads_any_more(start: Start) -> None:
    process = start()
    process.wait_for(lambda message: isinstance(message, Heartbeat))
    assert process.datapath.alive() != NEVER
    process.stop()
    assert process.datapath.alive() == NEVER


def test_the_heartbeat_tells_what_the_sockets_saw(start: Start, peers: Peers) -> None:
    process = start()
    first_packet(process, peers)

    def tells(message: Message) -> bool:
        return isinstance(message, Heartbeat) and message.received == 1

    heartbeat = process.wait_for(tells)
    assert isinstance(heartbeat, Heartbeat)
    assert (heartbeat.socket_drops, heartbeat.keys) == (0, (1,))
    assert heartbeat.reasons[Reason.PUNT_FIRST] == 1
    assert process.datapath.alive() >= heartbeat.stamp
