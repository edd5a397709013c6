"""A relay between one client and one endpoint, of both address families, and nothing else:

    client -- relay -- endpoint          two arms
    client -- segment -- endpoint        one arm: the relay is on the same segment
                 |
               relay

The endpoint sends back whatever it gets, so a client sees whether bytes came through unchanged.
"""

import contextlib
import secrets
import selectors
import shutil
import socket
import threading
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

from relayctl.wire.address import Address, render
from relayctl.wire.route_token import Key
from tests.lab import http, namespace, service_config
from tests.lab.node import Node
from tests.lab.program import Programs, stop_listed
from tests.lab.service_config import KEY_ID
from tests.lab.services import mount_bpffs, wait_for
from tests.lab.topology import BPFFS, directory_of

Family = Literal["v4", "v6"]
Arms = Literal["one", "two"]
Inner = Literal["spp", "transparent"]

KEY = Key(KEY_ID, secrets.token_bytes(32))
CLIENT: dict[Family, str] = {"v4": "10.1.0.2", "v6": "2001:db8:1::2"}
RELAY_OUTER: dict[Family, str] = {"v4": "10.1.0.1", "v6": "2001:db8:1::1"}
RELAY_INNER: dict[Family, str] = {"v4": "10.2.0.1", "v6": "fd00:2::1"}
ENDPOINT: dict[Family, Address] = {"v4": ("10.2.0.2", 5000), "v6": ("fd00:2::2", 5000)}
VIP: dict[Family, Address] = {"v4": ("203.0.113.10", 3478), "v6": ("2001:db8:113::10", 3478)}
NATTED: dict[Family, tuple[Address, Address]] = {  # public, local
    "v4": (("203.0.113.99", 443), ("10.1.0.9", 3479)),
    "v6": (("2001:db8:113::99", 443), ("2001:db8:1::9", 3479)),
}
CLUSTER: dict[Family, int] = {"v4": 7, "v6": 8}
_ALLOW = {"v4": "10.2.0.0/24", "v6": "fd00:2::/112"}
_PREFIX = {"v4": "::ffff:0:0/96", "v6": "fd00:2::/96"}
_LENGTH = {"v4": 24, "v6": 64}
_ADMIN = ("127.0.0.1", 9100)
INNER_MTU = 1280
_IFA_F_NODAD = 0x02  # linux/if_addr.h
FAMILIES: tuple[Family, ...] = ("v4", "v6")


def family_of(host: str) -> Family:
    return "v6" if ":" in host else "v4"


class Echoed(NamedTuple):
    """A datagram that the endpoint got, and from where."""

    datagram: bytes
    sender: Address


class Endpoint:
    """Sockets of both families in the endpoint's namespace, and a thread that sends back."""

    def __init__(self, node: Node) -> None:
        self.seen: list[Echoed] = []
        self._stopped, self._stop = socket.socketpair()
        self._sockets = [udp(node, *ENDPOINT[family]) for family in FAMILIES]
        self._thread = threading.Thread(target=self._serve, name="endpoint")
        self._thread.start()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            for sock in (*self._sockets, self._stopped):
                selector.register(sock, selectors.EVENT_READ)
            while True:
                for ready, _ in selector.select():
                    if ready.fileobj is self._stopped:
                        return
                    assert isinstance(ready.fileobj, socket.socket)
                    datagram, sender = ready.fileobj.recvfrom(65536)
                    self.seen.append(Echoed(datagram, sender[:2]))
                    ready.fileobj.sendto(datagram, sender)

    def close(self) -> None:
        self._stop.send(b"\0")
        self._thread.join()
        for sock in (*self._sockets, self._stop, self._stopped):
            sock.close()


def udp(node: Node, host: str, port: int = 0) -> socket.socket:
    """A bound UDP socket of a node, of either family, with a timeout."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = node.socket(family, socket.SOCK_DGRAM)
    sock.bind((host, port))
    sock.settimeout(2.0)
    return sock


class Reach:
    """A context manager: everything up and ready, everything gone at the end."""

    def __init__(
        self,
        prefix: str,
        *,
        datapath: Literal["xdp", "socket"] = "xdp",
        arms: Arms = "two",
        inner: Inner = "spp",
    ) -> None:
        self.prefix = prefix
        self.datapath = datapath
        self.arms = arms
        self.inner = inner
        self.directory = directory_of(prefix)

    def __enter__(self) -> "Reach":
        with contextlib.ExitStack() as stack:
            self._clean()
            stack.callback(self._clean)
            mount_bpffs()
            self.programs = Programs(self.directory)
            stack.callback(self.programs.stop_all)
            self._build()
            self.endpoint = Endpoint(self.endpoint_node)
            stack.callback(self.endpoint.close)
            self._serve()
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    @property
    def instance(self) -> str:
        return f"{self.prefix}reach"

    def reasons(self) -> dict[str, int]:
        answer = http.request(self.relay, self._url("/v1/reasons"))
        return {record["reason"]: record["count"] for record in answer.json()["reasons"]}

    def _url(self, path: str) -> str:
        return f"http://{_ADMIN[0]}:{_ADMIN[1]}{path}"

    def _clean(self) -> None:
        stop_listed(self.directory)
        shutil.rmtree(BPFFS / "ferryline" / self.instance, ignore_errors=True)
        for name in ("client", "relay", "endpoint", "segment"):
            if namespace.exists(f"{self.prefix}{name}"):
                namespace.remove(f"{self.prefix}{name}")

    def _build(self) -> None:
        self.client, self.relay = self._node("client"), self._node("relay")
        self.endpoint_node = self._node("endpoint")
        if self.arms == "two":
            cable(self.client, "eth0", self.relay, "outer0")
            cable(self.endpoint_node, "eth0", self.relay, "inner0")
            outer, inner = "outer0", "inner0"
        else:
            segment = self._node("segment")
            for number, node in enumerate((self.client, self.relay, self.endpoint_node)):
                cable(node, "eth0", segment, f"port{number}")
            segment.netlink(_bridge)
            outer = inner = "eth0"
        for family in FAMILIES:
            length = _LENGTH[family]
            for interface, host in (
                (outer, RELAY_OUTER[family]),
                (outer, NATTED[family][1][0]),
                (inner, RELAY_INNER[family]),
            ):
                add_address(self.relay, interface, host, length)
            add_address(self.relay, "lo", VIP[family][0], 32 if family == "v4" else 128)
            add_address(self.client, "eth0", CLIENT[family], length)
            add_address(self.endpoint_node, "eth0", ENDPOINT[family][0], length)
            add_route(self.client, "default" if family == "v4" else "::/0", RELAY_OUTER[family])
            add_route(
                self.endpoint_node, "default" if family == "v4" else "::/0", RELAY_INNER[family]
            )
        for node, interface in ((self.relay, inner), (self.endpoint_node, "eth0")):
            node.netlink(partial(_set_mtu, interface=interface, mtu=INNER_MTU))

    def _node(self, name: str) -> Node:
        namespace.create(f"{self.prefix}{name}")
        node = Node(f"{self.prefix}{name}", self.programs)
        node.sysctl(
            {
                "net.ipv4.conf.all.rp_filter": "0",
                "net.ipv4.conf.default.rp_filter": "0",
                "net.ipv4.conf.all.arp_announce": "2",
                "net.ipv4.conf.all.arp_ignore": "1",
            }
        )
        node.set_link("lo", up=True)
        return node

    def _serve(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        keys = self.directory / "route.keys"
        keys.write_text(f"{KEY.id} {KEY.secret.hex()}\n")
        config = self.directory / "relay.toml"
        config.write_text(self._config(keys))
        self.program = self.relay.python("relay", "relayctl", "serve", "--config", str(config))
        wait_for(self.program, self.relay, self._url("/readyz"))

    def _config(self, keys: Path) -> str:
        both = self.arms == "one"
        interfaces = [("eth0", "both")] if both else [("outer0", "outer"), ("inner0", "inner")]
        vips = [(1, VIP["v4"], VIP["v4"]), (2, VIP["v6"], VIP["v6"])]
        if self.inner == "spp":
            vips += [(3, *NATTED["v4"]), (4, *NATTED["v6"])]
        return service_config.toml(
            {
                "instance": self.instance,
                "datapath": self.datapath,
                "inner": self.inner,
                "keys_file": keys,
                "max_flows": 4096,
                "max_flows_v6": 1024,
                "inner_address": list(RELAY_INNER.values()),
                "trust_l2": both,
                "run_dir": self.directory,
                "admin": f"{_ADMIN[0]}:{_ADMIN[1]}",
            },
            *(
                ("vip", {"id": id, "public": render(public), "local": render(local)})
                for id, public, local in vips
            ),
            *(("interface", {"name": name, "role": role}) for name, role in interfaces),
            *(
                ("cluster", {"id": CLUSTER[f], "prefix": _PREFIX[f], "allow": [_ALLOW[f]]})
                for f in FAMILIES
            ),
        )


def cable(left: Node, left_interface: str, right: Node, right_interface: str) -> None:
    """A veth pair, up."""
    peer = {"ifname": right_interface, "net_ns_fd": right.namespace}
    left.netlink(lambda ip: ip.link("add", ifname=left_interface, kind="veth", peer=peer))
    ends = ((left, left_interface), (right, right_interface))
    for node, interface in ends:
        node.offloads(interface, gro=True)
    for node, interface in ends:  # only now: see `Lab`
        node.set_link(interface, up=True)


def add_address(node: Node, interface: str, host: str, length: int) -> None:
    """An address that can be used at once: nobody is asked whether he has it."""

    def add(ip: Any) -> None:
        index = ip.link_lookup(ifname=interface)[0]
        flags = {"flags": _IFA_F_NODAD} if ":" in host else {}
        ip.addr("add", index=index, address=host, prefixlen=length, **flags)

    node.netlink(add)


def add_route(node: Node, destination: str, gateway: str) -> None:
    node.netlink(lambda ip: ip.route("add", dst=destination, gateway=gateway))


def _set_mtu(ip: Any, interface: str, mtu: int) -> None:
    ip.link("set", index=ip.link_lookup(ifname=interface)[0], mtu=mtu)


def _bridge(ip: Any) -> None:
    ip.link("add", ifname="br0", kind="bridge")
    bridge = ip.link_lookup(ifname="br0")[0]
    for number in range(3):
        ip.link("set", index=ip.link_lookup(ifname=f"port{number}")[0], master=bridge)
    ip.link("set", index=bridge, state="up")
