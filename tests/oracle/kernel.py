"""The XDP program of a node, loaded and attached, playing the frames of scenes.

Needs root, a BPF file system and a network namespace that it may make devices in (`place`).
"""

import contextlib
import ctypes
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from relayctl.datapath import xdp
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.budgets import Region
from relayctl.datapath.libbpf import Program, possible_cpus
from relayctl.datapath.spec import Interface, Spec
from relayctl.flow import Flow, FlowKey, units
from relayctl.reason import Reason
from tests.oracle import node as world
from tests.oracle.node import CARRIERS, ROLELESS, Node
from tests.oracle.scene import NOW, Counter, Scene, Sent, moved

_CLONE_NEWNET = 0x40000000

_SLOTS = {
    Region.ENDPOINT: 64,
    Region.CLIENT: 64 + 1024,
    Region.TOKEN: 64 + 1024 + 16384,
    Region.FIRST: Reason.PUNT_FIRST,
    Region.ORPHAN: Reason.PUNT_ORPHAN,
    Region.RETURN: Reason.PUNT_RETURN,
    Region.ODD: Reason.PUNT_ODD,
    Region.NEXTHOP: Reason.PUNT_NEXTHOP,
}
"""Where the program keeps its counters (`bpf/flow.h`)."""


class Seen(NamedTuple):
    """What the program did with a frame: verdict, and the frame as it left it."""

    verdict: int
    frame: bytes


def now() -> int:
    """The stamp that the program makes at this moment."""
    return units(time.monotonic_ns())


@contextlib.contextmanager
def place() -> Iterator[Path]:
    """A BPF file system and, for this thread, a network namespace; both go in the end."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    with tempfile.TemporaryDirectory(prefix="ferryline-") as directory:
        subprocess.run(["mount", "-t", "bpf", "bpf", directory], check=True)
        try:
            if libc.unshare(_CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "cannot make a network namespace")
            for scope in ("all", "default"):  # nothing but test runs may count reasons
                Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")
            yield Path(directory)
        finally:
            libc.setns(home, _CLONE_NEWNET)
            os.close(home)
            subprocess.run(["umount", directory], check=True)


def _device(relay: Node, carrier: str) -> str:
    return f"{relay.name[:3]}-{carrier}"


def _spec(relay: Node, bpffs: Path) -> Spec:
    carriers = {c: socket.if_nametoindex(_device(relay, c)) for c in CARRIERS}
    return Spec(
        instance=f"oracle-{relay.name}",
        vips=relay.vips,
        interfaces=tuple(
            Interface(link.name, carriers[link.carrier], port, link.role, tags=link.tags)
            for port, link in world.PORTS.items()
        ),
        inner_addresses=relay.inner,
        clusters=world.CLUSTERS,
        max_flows=1024,
        max_flows_v6=1024,
        own=relay.own,
        allow_inner_clients=relay.inner_clients,
        transparent=relay.transparent,
        peers=tuple((peer.id, peer.host) for peer in relay.peers),
        foreign_vips=tuple(
            (
                vip.id,
                vip.public,
                tuple(p.id for p in relay.peers if relay.peers.serves(p.id, vip.id)),
            )
            for vip in relay.theirs
        ),
        bpffs=str(bpffs),
    )


class Kernel:
    """One node's program. For one thread, which has to stay on one CPU: counters are per CPU."""

    def __init__(self, relay: Node, bpffs: Path) -> None:
        for carrier in CARRIERS:
            _make_device(_device(relay, carrier))
        self._spec = _spec(relay, bpffs)
        xdp.load(self._spec)
        self._datapath = xdp.XdpDatapath.open(self._spec.pins)
        self._datapath.attach(self._spec.interfaces)
        self._datapath.write_keys(world.KEYS)
        for index, nexthop in world.NEXTHOPS.items():
            self._datapath.write_nexthop(index, nexthop)
        for slot, place in world.PLACES.items():
            self._datapath.write_peer(slot, place)
        self._program = Program.open(self._spec.pins / "program")
        self._budgets = Map.open(self._spec.pins / "budgets")
        self._reasons = Map.open(self._spec.pins / "reasons")
        self._devices = {c: socket.if_nametoindex(_device(relay, c)) for c in CARRIERS}
        self._devices[ROLELESS] = 0  # the loopback's number in a test run
        self._flows: list[FlowKey] = []

    def set(self, scene: Scene, now: int) -> None:
        """Bring the program into the scene's state, at stamp `now`."""
        for key in self._flows:
            self._datapath.flows.delete(key)
        for key, flow in scene.flows:
            assert self._datapath.flows.install(key, moved(flow, now - NOW))
        self._flows = [key for key, _ in scene.flows]
        self._datapath.beat(max(0, now - scene.heartbeat))
        for counter, used in scene.spent.items():
            self._write_budget(counter, now, used)

    def forget(self, counters: Iterable[Counter]) -> None:
        """Make budgets new again."""
        for counter in counters:
            self._write_budget(counter, 0, 0)

    def _write_budget(self, counter: Counter, unit: int, used: int) -> None:
        region, bucket = counter
        value = unit.to_bytes(4, sys.byteorder) + used.to_bytes(4, sys.byteorder)
        self._budgets.update(_index(_SLOTS[region] + bucket), value * possible_cpus())

    def run(self, sent: Sent) -> Seen:
        run = self._program.test_run(
            bytes(sent.metadata) + sent.frame,
            ifindex=self._devices[sent.carrier],
            metadata=sent.metadata,
        )
        return Seen(run.verdict, run.data[sent.metadata :])

    def counted(self, reason: int) -> int:
        """How many frames counted a reason of the program so far."""
        values = self._reasons.lookup_per_cpu(_index(reason))
        return sum(int.from_bytes(value, sys.byteorder) for value in values)

    def flow(self, key: FlowKey) -> Flow | None:
        return self._datapath.flows.get(key)

    def close(self) -> None:
        """Detach and remove everything."""
        for handle in (self._program, self._budgets, self._reasons, self._datapath):
            handle.close()
        xdp.unload(self._spec.instance, self._spec.bpffs)


def _index(number: int) -> bytes:
    return int(number).to_bytes(4, sys.byteorder)


def _make_device(name: str) -> None:
    for command in (f"add {name} type veth peer name {name}-", f"set {name} up"):
        subprocess.run(["ip", "link", *command.split()], check=True)
