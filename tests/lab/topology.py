"""The test network, each box a namespace:

    client -- hop -- router -- relay-a -- inner -- transceiver-1
                       | +---- relay-b -----+
                       |                    |
                       +---- signaling -----+

`hop` and `inner` are switches; with `hop="fault"` the first is `tests.lab.hop` instead. `relay-b`
stands there when it is asked for; both relays have the VIP, and the router's route decides. Nothing
here knows what the boxes run: see `tests.lab.services`.
"""

import contextlib
import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from pyroute2 import NetlinkError

from tests.lab import namespace
from tests.lab.hop_control import HopControl
from tests.lab.node import REPOSITORY, Node
from tests.lab.program import Programs, stop_listed

CLIENT = "10.1.0.2"
CLIENT_2 = "10.5.0.2"  # the client's second interface
HOST = "10.9.0.2"  # the machine itself, when it has a leg into the lab
ROUTER = "10.1.0.1"
RELAY_OUTER = "10.3.0.2"
RELAY_INNER = "10.2.0.1"
RELAYS_OUTER = (RELAY_OUTER, "10.6.0.2")
RELAYS_INNER = (RELAY_INNER, "10.2.0.7")
TRANSCEIVERS = ("10.2.0.2", "10.2.0.3")
SIGNALING = "10.4.0.2"
SIGNALING_INNER = "10.2.0.5"
VIP = "203.0.113.10"
_GATEWAY_2 = "10.5.0.1"

BPFFS = Path("/sys/fs/bpf")
_NODES = (
    *("client", "hop", "router", "relay-a", "relay-b", "inner"),
    *("transceiver-1", "transceiver-2", "signaling"),
)


class Cable(NamedTuple):
    """A veth pair. An end without an address is a port of a switch."""

    left: str
    left_interface: str
    left_address: str | None
    right: str
    right_interface: str
    right_address: str | None


_CABLES = (
    Cable("client", "eth0", f"{CLIENT}/24", "hop", "client0", None),
    Cable("router", "client0", f"{ROUTER}/24", "hop", "router0", None),
    Cable("router", "relay0", "10.3.0.1/24", "relay-a", "outer0", f"{RELAY_OUTER}/24"),
    Cable("relay-a", "inner0", f"{RELAY_INNER}/24", "inner", "relay-a", None),
    Cable("signaling", "inner0", f"{SIGNALING_INNER}/24", "inner", "signaling", None),
    Cable("signaling", "outer0", f"{SIGNALING}/24", "router", "signaling0", "10.4.0.1/24"),
)
_CABLES_B = (
    Cable("router", "relay1", "10.6.0.1/24", "relay-b", "outer0", f"{RELAYS_OUTER[1]}/24"),
    Cable("relay-b", "inner0", f"{RELAYS_INNER[1]}/24", "inner", "relay-b", None),
)
_GATEWAYS = {
    "client": ROUTER,
    "relay-a": "10.3.0.1",
    "relay-b": "10.6.0.1",
    "signaling": "10.4.0.1",
    "transceiver-1": RELAY_INNER,
    "transceiver-2": RELAY_INNER,
}
_RELAYS = ("relay-a", "relay-b")
_ROUTING = {
    "net.ipv4.ip_forward": "1",
    "net.ipv4.fib_multipath_hash_policy": "1",  # by the ports too: a client's calls spread
}
_SYSCTLS = {
    # An address on lo must not be announced by, or answered for on, the wrong interface.
    "net.ipv4.conf.all.arp_announce": "2",
    "net.ipv4.conf.all.arp_ignore": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "2",
    "net.ipv4.ip_forward": "0",
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
}


class Lab:
    """Use it as a context manager. `prefix` tells labs on one machine apart; its directory under
    build/lab has the logs."""

    NODES: tuple[str, ...] = _NODES  # that it may have

    def __init__(
        self,
        prefix: str = "fl-",
        *,
        hop: Literal["switch", "fault"] = "switch",
        seed: int = 1,
        second_client: bool = False,
        relays: int = 1,
        transceivers: int = 1,
        host_leg: bool = False,
    ) -> None:
        """With two `relays` the router spreads flows over both: see `route_vip`."""
        if len(f"{prefix}host") > 15:  # it names an interface of the host
            raise ValueError(f"prefix {prefix!r} is too long: at most 11 characters")
        self.prefix = prefix
        self.directory = directory_of(prefix)
        self.seed = seed
        self.fault = hop == "fault"
        self.second_client = second_client
        self.relay_count = relays
        self.transceiver_count = transceivers
        self.host_leg = host_leg
        self._open: contextlib.ExitStack | None = None

    def __enter__(self) -> Self:
        clean(self.prefix, self.NODES)
        with contextlib.ExitStack() as stack:
            stack.callback(clean, self.prefix, self.NODES)
            self._build(stack)
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def plug(self, in_: bool) -> None:
        """Pull or plug the cable of the client's first interface."""
        self.client.set_link("eth0", up=in_)
        if in_:  # the kernel dropped it with the link
            add_route(self.client, "default", ROUTER)

    def route_vip(self, *which: int) -> None:
        """Point the router's route of the VIP at these relays; none: nobody gets its packets."""
        if not which:
            self.router.netlink(_drop_vip)
            return
        hops = [{"gateway": RELAYS_OUTER[n], "hops": 0} for n in which]
        self.router.netlink(lambda ip: ip.route("replace", dst=f"{VIP}/32", multipath=hops))

    def reshuffle(self, seed: int) -> None:
        """Spread flows another way: each is as likely to move to the other relay as to stay."""
        self.router.sysctl({"net.ipv4.fib_multipath_hash_seed": str(seed)})

    def vanish(self, n: int) -> None:
        """Relay `n` is off the network, both sides of it; nobody is told."""
        for interface in ("outer0", "inner0"):
            self.relays[n].set_link(interface, up=False)

    def return_(self, n: int) -> None:
        """Relay `n` is back on the network."""
        for interface in ("outer0", "inner0"):
            self.relays[n].set_link(interface, up=True)
        add_route(self.relays[n], "default", _GATEWAYS[_RELAYS[n]])  # it went with the link

    def keep(self) -> None:
        """Let it live on after this process: `clean` ends it."""
        if self._open is not None:
            self._open.pop_all()
            self._open = None

    def node(self, name: str) -> Node:
        return self._nodes[name]

    @property
    def client(self) -> Node:
        return self._nodes["client"]

    @property
    def router(self) -> Node:
        return self._nodes["router"]

    @property
    def relay(self) -> Node:
        return self._nodes["relay-a"]

    @property
    def relays(self) -> list[Node]:
        return [self._nodes[name] for name in _RELAYS[: self.relay_count]]

    @property
    def signaling(self) -> Node:
        return self._nodes["signaling"]

    @property
    def transceivers(self) -> list[Node]:
        return [self._nodes[f"transceiver-{n + 1}"] for n in range(self.transceiver_count)]

    def _build(self, stack: contextlib.ExitStack) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        self.programs = Programs(self.directory)
        stack.callback(self.programs.stop_all)
        self.host = Node(None, self.programs)
        self._nodes: dict[str, Node] = {}
        for name in self._names():
            self._make_node(name)
        for cable in self._cables():
            self._lay(cable)
        self._wire_switch("inner")
        if not self.fault:
            self._wire_switch("hop")
        self._add_routes()
        if self.fault:
            self.hop = HopControl.start(self._nodes["hop"], self.directory, self.seed)
            stack.callback(self.hop.close)

    def _names(self) -> list[str]:
        left_out = {"relay-b"} if self.relay_count < 2 else set()
        left_out |= {"transceiver-2"} if self.transceiver_count < 2 else set()
        return [name for name in _NODES if name not in left_out]

    def _bumps(self) -> set[str]:
        """Nodes that are a fault hop."""
        return {"hop"} if self.fault else set()

    def _make_node(self, name: str) -> None:
        namespace.create(f"{self.prefix}{name}")
        node = self._nodes[name] = Node(f"{self.prefix}{name}", self.programs)
        node.sysctl(_SYSCTLS | (_ROUTING if name == "router" else {}))
        node.set_link("lo", up=True)

    def _cables(self) -> list[Cable]:
        cables = [*_CABLES, *(_CABLES_B if self.relay_count > 1 else ())]
        for n in range(self.transceiver_count):
            name = f"transceiver-{n + 1}"
            cables.append(Cable(name, "eth0", f"{TRANSCEIVERS[n]}/24", "inner", name, None))
        if self.second_client:
            cables.append(
                Cable("client", "eth1", f"{CLIENT_2}/24", "router", "client1", f"{_GATEWAY_2}/24")
            )
        if self.host_leg:
            own = f"{self.prefix}host"
            self._nodes["host"] = self.host
            cables.append(Cable("host", own, f"{HOST}/30", "router", "host0", "10.9.0.1/30"))
        return cables

    def _lay(self, cable: Cable) -> None:
        left, right = self._nodes[cable.left], self._nodes[cable.right]
        peer = {"ifname": cable.right_interface, "net_ns_fd": right.namespace}
        left.netlink(lambda ip: ip.link("add", ifname=cable.left_interface, kind="veth", peer=peer))
        ends = (
            (left, cable.left_interface, cable.left_address),
            (right, cable.right_interface, cable.right_address),
        )
        bumps = {self._nodes[name] for name in self._bumps()}
        for node, interface, _ in ends:
            # A fault hop passes frames on as they come: GRO would make them too long.
            node.offloads(interface, gro=node not in bumps)
        # Only now: a veth that goes up while its far end lacks GRO refuses redirected frames for
        # good, even once the far end has it.
        for node, interface, address in ends:
            node.netlink(partial(_bring_up, interface=interface, address=address))

    def _wire_switch(self, name: str) -> None:
        ports = [c.right_interface for c in self._cables() if c.right == name]
        self._nodes[name].netlink(lambda ip: _make_bridge(ip, ports))

    def _add_routes(self) -> None:
        for name, gateway in _GATEWAYS.items():
            if name in self._nodes:
                add_route(self._nodes[name], "default", gateway)
        for relay in self.relays:
            relay.netlink(partial(add_own, address=VIP))
        self.route_vip(*range(self.relay_count))
        if self.second_client:
            self.client.netlink(_add_second_uplink)
        if self.host_leg:
            for destination in (f"{VIP}/32", "10.4.0.0/24"):
                add_route(self.host, destination, "10.9.0.1")
            # Browsers try every address of the host, whichever way the VIP lies.
            add_route(self.router, "default", HOST)


def directory_of(prefix: str) -> Path:
    """Where the lab `prefix` keeps logs, configuration and its pid list."""
    return REPOSITORY / "build" / "lab" / prefix.strip("-")


def clean(prefix: str, nodes: Iterable[str] = _NODES) -> None:
    """Remove whatever a lab of this prefix left behind: programs, pins, namespaces, cable."""
    stop_listed(directory_of(prefix))
    for name in nodes:
        shutil.rmtree(BPFFS / "ferryline" / f"{prefix}{name}", ignore_errors=True)
        if namespace.exists(f"{prefix}{name}"):
            namespace.remove(f"{prefix}{name}")
    host = Node(None, Programs(directory_of(prefix)))
    host.netlink(lambda ip: _remove_link(ip, f"{prefix}host"))


def _index(ip: Any, interface: str) -> int:
    index: int = ip.link_lookup(ifname=interface)[0]
    return index


def _bring_up(ip: Any, interface: str, address: str | None) -> None:
    index = _index(ip, interface)
    if address is not None:
        host, _, length = address.partition("/")
        ip.addr("add", index=index, address=host, prefixlen=int(length))
    ip.link("set", index=index, state="up")


def _make_bridge(ip: Any, ports: list[str]) -> None:
    ip.link("add", ifname="br0", kind="bridge")
    bridge = _index(ip, "br0")
    for port in ports:
        ip.link("set", index=_index(ip, port), master=bridge)
    ip.link("set", index=bridge, state="up")


def _drop_vip(ip: Any) -> None:
    with contextlib.suppress(NetlinkError):  # there was none
        ip.route("del", dst=f"{VIP}/32")


def add_own(ip: Any, address: str) -> None:
    """An address that is the node's own whatever interface it is asked on."""
    ip.addr("add", index=_index(ip, "lo"), address=address, prefixlen=32)


def add_route(node: Node, destination: str, gateway: str) -> None:
    """`destination` may be "default"."""
    node.netlink(lambda ip: ip.route("add", dst=destination, gateway=gateway))


def _add_second_uplink(ip: Any) -> None:
    """A socket leaves by the interface whose address it has, else by the first that is up."""
    ip.route("add", dst="default", gateway=_GATEWAY_2, priority=200)
    ip.route("add", dst="default", gateway=_GATEWAY_2, table=5)
    ip.rule("add", src=f"{CLIENT_2}/32", table=5)


def _remove_link(ip: Any, interface: str) -> None:
    for index in ip.link_lookup(ifname=interface):
        with contextlib.suppress(NetlinkError):  # it went with its namespace just now
            ip.link("del", index=index)
