"""The loop between real sockets on loopback; both datapaths, the kernel's part in memory."""

import base64
import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from relayctl import cached_flow
from relayctl.channel import Channel
from relayctl.config import RelayConfig
from relayctl.datapath.base import NEVER, Datapath
from relayctl.datapath.socket import SocketDatapath
from relayctl.flow import CONFIRMED, Flow, FlowKey
from relayctl.messages import (
    Absent,
    FlowsPart,
    Found,
    FoundAll,
    Heartbeat,
    Message,
    Restored,
    RouteEntry,
    RoutesPart,
    Wanted,
    decode_flow,
)
from relayctl.packet.commands import PacketCommands
from relayctl.packet.process import PacketProcess
from relayctl.packet.sockets import PacketSocket, RawSocket
from relayctl.packet.view import PacketView, address_policy
from relayctl.reason import Reason
from relayctl.wire import spp
from relayctl.wire.address import Address, render
from tests.unit.relayctl.memory_datapath import MemoryDatapath
from tests.unit.relayctl.packet.test_sockets import LOOPBACK, LOOPBACK_6, free_port
from tests.unit.relayctl.packets import DTLS, KEY, binding_request, binding_response, config, token


def local_config() -> RelayConfig:
    return config(
        datapath="socket",
        dev_local=True,
        inner_address=[LOOPBACK, LOOPBACK_6],
        inner_ports=1,
        inner_port_base=free_port(),
        vip=[
            {"id": id, "public": render((host, free_port(host)))}
            for id, host in enumerate((LOOPBACK, LOOPBACK_6), 1)
        ],
        cluster=[
            {"id": 7, "allow": ["127.0.0.0/8"]},
            {"id": 9, "prefix": "::/96", "allow": ["::1/128"]},
        ],
        interface=[],
    )


class Process:
    """A running packet process, with the control process's end of its channel."""

    def __init__(
        self,
        in_kernel: bool,
        capacity: int = 16,
        interfaces: frozenset[int] = frozenset(),
        transparent: bool = False,
        held: Mapping[FlowKey, Flow] = MappingProxyType({}),
        counted: Mapping[Reason, int] = MappingProxyType({}),
        redis: str | None = None,
    ) -> None:
        self.config = local_config()
        self.vip = self.config.vips[0].public
        self.vip_6 = self.config.vips[1].public
        sport = self.config.inner_port_base
        policy = address_policy(self.config)
        self.datapath: Datapath = (
            MemoryDatapath(capacity)
            if in_kernel
            else SocketDatapath(capacity, {self.vip: 1, self.vip_6: 2}, policy)
        )
        self.datapath.write_keys({1: KEY})
        self.datapath.write_slow_reasons(counted)
        for key, flow in held.items():
            self.datapath.flows.install(key, flow)
        view_config = self.config.model_copy(
            update={
                "datapath": "xdp" if in_kernel else "socket",
                "inner": "transparent" if transparent else "spp",
                "redis": redis,
            }
        )
        self._ours, raw = Channel.pair()
        self.control = Channel(raw)
        view = PacketView(view_config, self.datapath, {1: KEY}, lambda *_: None)
        self._sockets = [
            PacketSocket(self.vip, vip=1, interfaces=True),
            PacketSocket(self.vip_6, vip=2, interfaces=True),
        ]
        if not transparent:
            self._sockets += [
                PacketSocket((host, sport), sport=sport, interfaces=True)
                for host in (LOOPBACK, LOOPBACK_6)
            ]
        self._raw = [RawSocket(False), RawSocket(True)] if transparent else []
        process = PacketProcess(
            view,
            self.datapath,
            self._sockets,
            self._ours,
            PacketCommands(view, self.datapath, self._ours, Path("/nonexistent")),
            raw_sockets=self._raw,
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
        for raw in self._raw:
            raw.close()


Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[Process] = []

    def start_one(
        in_kernel: bool = False,
        capacity: int = 16,
        interfaces: frozenset[int] = frozenset(),
        redis: str | None = None,
    ) -> Process:
        running.append(Process(in_kernel, capacity, interfaces, redis=redis))
        return running[-1]

    yield start_one
    for process in running:
        process.stop()


def udp_socket(host: str) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, 0))
    sock.settimeout(2)
    return sock


@pytest.fixture
def peers() -> Iterator[tuple[socket.socket, socket.socket]]:
    with udp_socket(LOOPBACK) as client, udp_socket(LOOPBACK) as endpoint:
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


def test_a_flow_of_redis_forwards_and_is_told(start: Start, peers: Peers) -> None:
    process = start()
    client, endpoint = peers
    key = FlowKey(client.getsockname(), 1)
    value = cached_flow.encode(Flow(endpoint.getsockname(), 7, 0))
    record = cached_flow.RECORD_KEY.pack(len(key), key) + value
    for _ in range(8):  # more than one turn takes; one flow
        assert process.control.send(Found(base64.b64encode(record).decode()))
    assert process.control.send(FoundAll())
    assert process.wait_for(lambda message: isinstance(message, Restored)) == Restored(1, 0)
    client.sendto(DTLS, process.vip)
    header, payload = spp.split(endpoint.recvfrom(2000)[0])
    assert payload == DTLS
    assert spp.decode(header) == spp.Header(client.getsockname(), process.vip)


RTP = b"\x80\x6f" + bytes(6) + (77).to_bytes(4, "big") + b"media"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("found", Reason.SLOW_CACHED),
        ("hinted", Reason.SLOW_CACHED_HINT),
        ("absent", Reason.SLOW_ORPHAN),
        ("", Reason.SLOW_LATE),
    ],
)
def test_an_orphan_waits_for_redis(start: Start, peers: Peers, answer: str, reason: Reason) -> None:
    process = start(redis="redis://nowhere")
    client, endpoint = peers
    key = FlowKey(client.getsockname(), 1)
    client.sendto(RTP, process.vip)
    wanted = process.wait_for(lambda message: isinstance(message, Wanted))
    assert isinstance(wanted, Wanted)
    assert cached_flow.read_wanted(base64.b64decode(wanted.orphans)) == [(key, 77)]
    value = cached_flow.encode(Flow(endpoint.getsockname(), 7, 0, ssrc=77))
    record = base64.b64encode(cached_flow.pack_record(key, value)).decode()
    match answer:
        case "found":
            process.control.send(Found(record))
        case "hinted":
            process.control.send(Found("", record))
        case "absent":
            process.control.send(Absent(base64.b64encode(cached_flow.pack_key(key)).decode()))
    if answer in ("found", "hinted"):
        assert spp.split(endpoint.recvfrom(2000)[0])[1] == RTP
    assert process.count(reason) == 1
    assert (process.datapath.flows.get(key) is not None) is (answer == "found")


@pytest.mark.parametrize("client_host", [LOOPBACK, LOOPBACK_6])
@pytest.mark.parametrize("endpoint_host", [LOOPBACK, LOOPBACK_6])
def test_families_mix(start: Start, client_host: str, endpoint_host: str) -> None:
    process = start()
    with udp_socket(client_host) as client, udp_socket(endpoint_host) as endpoint:
        vip = process.vip_6 if client_host == LOOPBACK_6 else process.vip
        cluster = 9 if endpoint_host == LOOPBACK_6 else 7
        request = binding_request(token(endpoint.getsockname()[:2], cluster=cluster))
        client.sendto(request, vip)
        datagram, relay = endpoint.recvfrom(2000)
        header, payload = spp.split(datagram)
        assert payload == request
        assert spp.decode(header) == spp.Header(client.getsockname()[:2], vip)
        endpoint.sendto(header + DTLS, relay)
        payload, sender = client.recvfrom(2000)
        assert (payload, sender[:2]) == (DTLS, vip)


def test_a_proven_takeover_moves_the_flow(start: Start, peers: Peers) -> None:
    process = start()
    client, first = peers
    header, _ = first_packet(process, peers)
    with udp_socket(LOOPBACK) as second:
        client.sendto(binding_request(token(second.getsockname())), process.vip)
        _, relay = second.recvfrom(2000)
        process.wait_for(lambda message: isinstance(message, Heartbeat) and message.takeovers == 1)
        check = binding_request(b"client-ufrag", transaction=b"twelve bytes")
        second.sendto(header + check, relay)
        assert client.recvfrom(2000)[0] == check
        client.sendto(DTLS, process.vip)
        assert first.recvfrom(2000)[0] == header + DTLS
        client.sendto(binding_response(b"twelve bytes"), process.vip)
        assert second.recvfrom(2000)[0] == header + binding_response(b"twelve bytes")
        client.sendto(DTLS, process.vip)
        assert second.recvfrom(2000)[0] == header + DTLS
    assert process.count(Reason.SLOW_REPOINTED) == 1


def test_one_token_has_eight_new_flows(start: Start, peers: Peers) -> None:
    process = start()
    _, endpoint = peers
    request = binding_request(token(endpoint.getsockname()))
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(udp_socket(LOOPBACK)) for _ in range(11)]
        for client in clients:
            client.sendto(request, process.vip)
            endpoint.recvfrom(2000)
        keys = [FlowKey(client.getsockname(), 1) for client in clients]
    assert {key for key, _ in process.datapath.flows.items()} == set(keys[3:])
    process.wait_for(lambda message: isinstance(message, Heartbeat) and message.displaced == 3)


@pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets need root")
@pytest.mark.parametrize(("host", "cluster"), [(LOOPBACK, 7), (LOOPBACK_6, 9)])
def test_transparent_mode_keeps_the_clients_address(host: str, cluster: int) -> None:
    process = Process(in_kernel=True, transparent=True)
    try:
        routes = tuple(
            RouteEntry(network, ((1, None, 1500),), 0) for network in ("0.0.0.0/0", "::/0")
        )
        process.control.send(RoutesPart(1, 0, 1, routes))
        vip = process.vip_6 if host == LOOPBACK_6 else process.vip
        with udp_socket(host) as client, udp_socket(host) as endpoint:
            request = binding_request(token(endpoint.getsockname()[:2], cluster=cluster))
            client.sendto(request, vip)
            assert endpoint.recvfrom(2000) == (request, client.getsockname())
            client.sendto(DTLS, vip)  # the program would carry it; what it cannot comes here
            assert endpoint.recvfrom(2000) == (DTLS, client.getsockname())
    finally:
        process.stop()


def test_what_nobody_confirmed_ends_even_over_a_restart() -> None:
    old, confirmed = FlowKey((LOOPBACK, 9), 1), FlowKey((LOOPBACK_6, 9), 2)
    flow = Flow((LOOPBACK, 5000), 7, 5100)
    process = Process(in_kernel=True, held={old: flow, confirmed: flow._replace(flags=CONFIRMED)})
    try:
        process.wait_for(lambda message: isinstance(message, Heartbeat))
        assert [key for key, _ in process.datapath.flows.items()] == [confirmed]
    finally:
        process.stop()


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


def test_what_came_together_is_handled_in_its_order(start: Start, peers: Peers) -> None:
    process = start(in_kernel=True)  # without routes it does not read
    client, endpoint = peers
    requests = [binding_request(token(endpoint.getsockname(), nonce=n)) for n in range(2)]
    with udp_socket(LOOPBACK) as other, udp_socket(LOOPBACK) as third:
        for sender, payload in (
            (client, requests[0]),  # opens a flow
            (client, DTLS),  # needs it
            (other, requests[1]),  # opens another
            (third, requests[1]),  # bears the same token
            (other, requests[1]),  # has its flow by now
        ):
            sender.sendto(payload, process.vip)
        default = RouteEntry("0.0.0.0/0", ((1, None, 1500),), 0)
        process.control.send(RoutesPart(1, 0, 1, (default,)))
        found = [spp.split(endpoint.recv(2000)) for _ in range(5)]
        senders = [client, client, other, third, other]
        assert [spp.decode(header).client for header, _ in found] == [
            sender.getsockname() for sender in senders
        ]
    assert [payload for _, payload in found] == [requests[0], DTLS, *[requests[1]] * 3]
    assert process.count(Reason.SLOW_INSTALLED, at_least=3) == 3
    assert process.count(Reason.SLOW_FORWARD, at_least=2) == 2


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


def test_counters_go_on_where_an_earlier_process_stopped(peers: Peers) -> None:
    process = Process(False, counted={Reason.SLOW_INSTALLED: 7, Reason.FORWARD: 3})
    try:
        first_packet(process, peers)
        assert process.count(Reason.SLOW_INSTALLED, at_least=8) == 8
    finally:
        process.stop()
