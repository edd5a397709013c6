"""The rig: three namespaces in a row, joined by two veth pairs, one generator, two counters.

    b-gen: gen0 ---- outer0 :b-relay: inner0 ---- sink0 :b-sink

A veth hands a frame over on the sender's CPU, so the generator, all that a relay does in the kernel
and the counter behind it take turns on CPU 0: a frame is sent when the one before it has arrived or
is lost, and the rate is that of one core for the three together. The process of a user-space relay
has CPU 1 for itself.
"""

import contextlib
import os
import types
from collections.abc import Iterator
from functools import partial
from socket import AF_INET, AF_INET6
from typing import Any

from tests.bench.wire import FAMILIES, HOSTS, MACS, VIP, Family
from tests.lab import namespace
from tests.lab.node import REPOSITORY, Node
from tests.lab.program import Programs, stop_listed

PREFIX = "b-"
GENERATOR_CPU, RELAY_CPU = 0, 1
DIRECTORY = REPOSITORY / "build" / "bench"

_CABLES = (("gen", "gen0", "relay", "outer0"), ("relay", "inner0", "sink", "sink0"))
_LINK_PREFIXES: tuple[tuple[Family, int], ...] = ((4, 24), (6, 64))
_PERMANENT = 128  # NUD_PERMANENT
_SYSCTLS = {
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.ip_forward": "1",
    "net.ipv6.conf.all.forwarding": "1",
    "net.ipv6.conf.all.accept_dad": "0",
    "net.ipv6.conf.default.accept_dad": "0",
    "net.ipv6.conf.all.accept_ra": "0",
    "net.ipv6.conf.default.accept_ra": "0",
    "net.ipv6.conf.default.router_solicitations": "0",
    "net.ipv6.conf.default.addr_gen_mode": "1",
    "net.netfilter.nf_conntrack_checksum": "0",  # a NIC does it
}


class Rig:
    """A context manager. One at a time on a machine."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "Rig":
        clean()
        with contextlib.ExitStack() as stack:
            stack.callback(clean)
            self._build(stack)
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._open.close()

    def ifindex(self, interface: str) -> int:
        return self._indices[interface]

    def node_of(self, interface: str) -> Node:
        return self._owners[interface]

    @property
    def relay(self) -> Node:
        return self._owners["outer0"]

    def _build(self, stack: contextlib.ExitStack) -> None:
        self.programs = Programs(DIRECTORY)
        stack.callback(self.programs.stop_all)
        self._owners: dict[str, Node] = {}
        self._indices: dict[str, int] = {}
        nodes = {name: _make_node(name, self.programs) for name in ("gen", "relay", "sink")}
        for left, left_if, right, right_if in _CABLES:
            peer = {"ifname": right_if, "net_ns_fd": nodes[right].namespace}
            nodes[left].netlink(partial(_make_veth, name=left_if, peer=peer))
            for node, interface in ((nodes[left], left_if), (nodes[right], right_if)):
                self._owners[interface] = node
                node.offloads(interface, gro=True)
        for interface, node in self._owners.items():
            self._indices[interface] = node.netlink(partial(_bring_up, name=interface))
        for near, far in (("outer0", "gen0"), ("inner0", "sink0")):
            self.relay.netlink(partial(_know, name=near, far=far))
        self.relay.netlink(_settle_relay)


def clean() -> None:
    """Remove whatever an earlier rig left behind."""
    stop_listed(DIRECTORY)
    for name in ("gen", "relay", "sink"):
        if namespace.exists(f"{PREFIX}{name}"):
            namespace.remove(f"{PREFIX}{name}")


@contextlib.contextmanager
def on_cpu(cpu: int) -> Iterator[None]:
    """This thread runs there, ahead of ordinary tasks: for tenths of a second."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, before)


def _make_node(name: str, programs: Programs) -> Node:
    namespace.create(f"{PREFIX}{name}")
    node = Node(f"{PREFIX}{name}", programs)
    node.sysctl(_SYSCTLS)
    node.set_link("lo", up=True)
    return node


def _make_veth(ip: Any, name: str, peer: dict[str, Any]) -> None:
    ip.link("add", ifname=name, kind="veth", peer=peer)


def _bring_up(ip: Any, name: str) -> int:
    index: int = ip.link_lookup(ifname=name)[0]
    ip.link("set", index=index, address=MACS[name].hex(":"))
    for family, length in _LINK_PREFIXES:
        ip.addr("add", index=index, address=HOSTS[family][name], prefixlen=length)
    ip.link("set", index=index, state="up")
    return index


def _know(ip: Any, name: str, far: str) -> None:
    """The neighbour across the cable, for good."""
    index = ip.link_lookup(ifname=name)[0]
    mac = MACS[far].hex(":")
    for family in FAMILIES:
        ip.neigh("replace", ifindex=index, dst=HOSTS[family][far], lladdr=mac, state=_PERMANENT)


def _settle_relay(ip: Any) -> None:
    loopback = ip.link_lookup(ifname="lo")[0]
    for family in FAMILIES:
        ip.addr("add", index=loopback, address=VIP[family][0], prefixlen=32 if family == 4 else 128)
        numbered = AF_INET if family == 4 else AF_INET6
        ip.route("add", dst="default", gateway=HOSTS[family]["gen0"], family=numbered)
