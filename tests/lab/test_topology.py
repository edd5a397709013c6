"""The test network itself: who reaches whom, and what may not leak."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.lab import namespace, topology
from tests.lab.frame import parse
from tests.lab.node import Node
from tests.lab.topology import Lab


@pytest.fixture(scope="module")
def lab(lab_prefix: str) -> Iterator[Lab]:
    with Lab(lab_prefix, second_client=True, transceivers=2, host_leg=True) as lab:
        yield lab


def exchange(sender: Node, source: str, receiver: Node, target: str) -> str:
    """Send a datagram there and back; the sender's address as the receiver saw it."""
    with receiver.udp(target, 3478) as there, sender.udp(source) as here:
        here.sendto(b"ping", (target, 3478))
        data, seen = there.recvfrom(100)
        there.sendto(data, seen)
        assert here.recvfrom(100) == (b"ping", (target, 3478))
        return str(seen[0])


def test_client_reaches_the_vip(lab: Lab) -> None:
    assert exchange(lab.client, topology.CLIENT, lab.relay, topology.VIP) == topology.CLIENT


def test_second_interface_reaches_the_vip_by_its_own_cable(lab: Lab) -> None:
    with lab.node("router").capture("client1") as wire:
        wire.settimeout(2)
        assert exchange(lab.client, topology.CLIENT_2, lab.relay, topology.VIP) == topology.CLIENT_2
        found = parse(wire.recv(2000))
        while found is None:  # ARP comes first
            found = parse(wire.recv(2000))
        assert found.source[0] == topology.CLIENT_2


def test_host_reaches_vip_and_signaling(lab: Lab) -> None:
    assert exchange(lab.host, topology.HOST, lab.relay, topology.VIP) == topology.HOST
    assert exchange(lab.host, topology.HOST, lab.signaling, topology.SIGNALING) == topology.HOST


def test_inner_network(lab: Lab) -> None:
    for node, address in zip(lab.transceivers, topology.TRANSCEIVERS, strict=True):
        exchange(lab.relay, topology.RELAY_INNER, node, address)
        exchange(lab.signaling, topology.SIGNALING_INNER, node, address)


def test_only_the_router_forwards(lab: Lab) -> None:
    """A relay that routed in the kernel would hide a dead datapath."""
    with lab.transceivers[0].udp(topology.TRANSCEIVERS[0], 3478, timeout_s=0.3) as there:
        lab.node("router").run(["ip", "route", "add", "10.2.0.0/24", "via", topology.RELAY_OUTER])
        with lab.client.udp(topology.CLIENT) as here:
            here.sendto(b"ping", (topology.TRANSCEIVERS[0], 3478))
            with pytest.raises(TimeoutError):
                there.recv(100)


def test_gro_on_and_checksums_complete(lab: Lab) -> None:
    for node, interface in [("relay-a", "outer0"), ("router", "relay0"), ("inner", "relay-a")]:
        features = lab.node(node).run(["ethtool", "-k", interface]).stdout
        assert "generic-receive-offload: on" in features
        assert "tx-checksumming: off" in features
        assert "rx-checksumming: off" in features


def test_vip_is_not_announced_by_arp(lab: Lab) -> None:
    """The relay asks for its gateway in its own name even when it sends from the VIP."""
    lab.relay.run(["ip", "neigh", "flush", "dev", "outer0"])
    with lab.node("router").capture("relay0") as wire, lab.relay.udp(topology.VIP) as sock:
        wire.settimeout(2)
        sock.sendto(b"ping", (topology.CLIENT, 9))
        frame = wire.recv(2000)
        while frame[12:14] != b"\x08\x06" or frame[20:22] != b"\x00\x01":  # ARP request
            frame = wire.recv(2000)
        sender = ".".join(map(str, frame[28:32]))
        assert sender == topology.RELAY_OUTER


def test_pulled_cable_and_back(lab: Lab) -> None:
    lab.plug(False)
    exchange(lab.client, topology.CLIENT_2, lab.relay, topology.VIP)
    with pytest.raises(OSError, match=r"unreachable|timed out"):
        exchange(lab.client, topology.CLIENT, lab.relay, topology.VIP)
    lab.plug(True)
    exchange(lab.client, topology.CLIENT, lab.relay, topology.VIP)


def test_two_labs_side_by_side_and_a_crash(lab: Lab, lab_prefix: str) -> None:
    """A lab that was never taken down goes whole, programs too, and its neighbour stays."""
    prefix = f"{lab_prefix}2-"
    started = time.monotonic()
    left = Lab(prefix).__enter__()
    assert time.monotonic() - started < 3
    sleeper = left.client.popen("sleeper", ["sleep", "60"])
    left.keep()

    topology.clean(prefix)

    assert sleeper.process.wait(2) == -signal.SIGTERM
    assert not any(name.startswith(prefix) for name in os.listdir("/run/netns"))
    assert namespace.exists(f"{lab_prefix}client")
    exchange(lab.client, topology.CLIENT, lab.relay, topology.VIP)
