"""The product's own program, maps and attachment, driven packet by packet without a NIC.

`Rig.send` runs one frame through BPF_PROG_TEST_RUN and tells verdict, bytes and counted reason.
"""

import base64
import functools
import ipaddress
import itertools
import operator
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any

from relayctl.datapath.base import Nexthop
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.libbpf import Program, possible_cpus
from relayctl.datapath.spec import Interface, Role, Spec, Vip
from relayctl.datapath.xdp import XdpDatapath
from relayctl.flow import Flow, FlowKey, units
from relayctl.reason import Reason
from relayctl.wire.cluster import Cluster
from relayctl.wire.route_token import Key, Route, mint
from tests.kernel.packets import Address

CLIENT = ("192.0.2.77", 40000)
VIP = ("203.0.113.10", 3478)
NATTED_PUBLIC = ("203.0.113.99", 443)  # VIP 2, behind a 1:1 NAT
NATTED_LOCAL = ("10.9.8.7", 3478)
INNER = "10.2.0.1"
ENDPOINT = ("10.2.0.2", 5000)
CLIENT_V6 = ("2001:db8:77::77", 40000)
VIP_V6 = ("2001:db8:113::10", 3478)
NATTED_PUBLIC_V6 = ("2001:db8:113::99", 443)  # VIP 4
NATTED_LOCAL_V6 = ("fd00:9::7", 3478)
INNER_V6 = "fd00:2::1"
ENDPOINT_V6 = ("fd00:2::2", 5000)
KEY = Key(1, bytes(range(32)))
SPORT = 5107
OUTER, INNER_SIDE, BOTH = "outer0", "inner0", "both0"  # interfaces
LOOPBACK = "lo"  # an interface that the program has no role for
VLANS = {  # VLAN ids by role, outer first: what one interface carries beside its own traffic
    (OUTER, (5, 0)): Role.OUTER,
    (OUTER, (6, 7)): Role.INNER,
    (INNER_SIDE, (8, 0)): Role.BOTH,
}
TO_ENDPOINT, TO_CLIENT, UNRESOLVED, NO_PORT, SMALL, TAGGED, STACKED = range(1, 8)  # nexthops
ENDPOINT_MACS = (bytes.fromhex("020000000201"), bytes.fromhex("020000000202"))
CLIENT_MACS = (bytes.fromhex("020000000101"), bytes.fromhex("020000000102"))


def _words(host: str) -> list[int]:
    packed = ipaddress.ip_address(host).packed
    return [int.from_bytes(packed[at : at + 4], "big") for at in range(0, len(packed), 4)]


def _return_slot(endpoint: Address) -> int:
    y = _words(endpoint[0])[-1] ^ endpoint[1]
    return 64 + ((y ^ y >> 16) & 1023)


def _orphan_slot(client: Address) -> int:
    x = functools.reduce(operator.xor, _words(client[0]))
    return 64 + 1024 + ((x ^ x >> 16) & 16383)


RETURN_SLOT, RETURN_SLOT_V6 = _return_slot(ENDPOINT), _return_slot(ENDPOINT_V6)
ORPHAN_SLOT, ORPHAN_SLOT_V6 = _orphan_slot(CLIENT), _orphan_slot(CLIENT_V6)

_nonces = itertools.count()


def token(endpoint: Address = ENDPOINT, *, key: Key = KEY, cluster: int | None = None) -> str:
    """An authentic token: another one with each call, with a budget of its own."""
    host, port = _words(endpoint[0])[-1], endpoint[1]
    nonce = next(_nonces).to_bytes(3, "big")
    return mint(key, Route(cluster_of(endpoint) if cluster is None else cluster, host, port, nonce))


def cluster_of(endpoint: Address) -> int:
    return 8 if ":" in endpoint[0] else 7


def token_slot(token: str) -> int:
    """Which slot of `budgets` counts the requests with this token."""
    tag = base64.b64decode(token)[1:3]
    return 64 + 1024 + 16384 + int.from_bytes(tag, "little")


def now() -> int:
    return units(time.monotonic_ns())


def fresh_unit(room: float = 0.5) -> None:
    """Wait until the present unit of time has at least `room` of it left."""
    left = 1 - (time.monotonic_ns() % (1 << 30)) / (1 << 30)
    if left < room:
        time.sleep(left * 1.08 + 0.01)


def ifindex(interface: str) -> int:
    """Number of an interface; 0 stands for the loopback in a test run."""
    return 0 if interface == LOOPBACK else socket.if_nametoindex(interface)


def spec(bpffs: Path, instance: str, **changes: Any) -> Spec:
    """The node of these tests; its interfaces have to exist."""
    node: dict[str, Any] = {
        "instance": instance,
        "vips": (
            Vip(1, VIP, VIP),
            Vip(2, NATTED_PUBLIC, NATTED_LOCAL),
            Vip(3, VIP_V6, VIP_V6),
            Vip(4, NATTED_PUBLIC_V6, NATTED_LOCAL_V6),
        ),
        "interfaces": (
            Interface(OUTER, ifindex(OUTER), 1, Role.OUTER),
            Interface(INNER_SIDE, ifindex(INNER_SIDE), 2, Role.INNER),
            Interface(BOTH, ifindex(BOTH), 3, Role.BOTH),
            *(
                Interface(f"{name}.{tags}", 9000 + port, port, role, ifindex(name), tags)
                for port, ((name, tags), role) in enumerate(VLANS.items(), 4)
            ),
        ),
        "inner_addresses": (INNER, INNER_V6),
        "clusters": (
            Cluster(7, (IPv4Network("10.2.0.0/24"), IPv4Network("10.77.0.0/16"))),
            Cluster(8, (IPv6Network("fd00:2::/112"),), IPv6Network("fd00:2::/96")),
        ),
        "max_flows": 1024,
        "max_flows_v6": 256,
        "own": ("10.3.0.2", "fd00:3::2"),
        "bpffs": str(bpffs),
    }
    return Spec(**node | changes)


@dataclass(frozen=True)
class Outcome:
    reason: Reason
    verdict: int
    data: bytes


class Rig:
    """A loaded and attached program. Not thread-safe, like the counters it reads."""

    def __init__(self, datapath: XdpDatapath, pins: Path) -> None:
        self.datapath = datapath
        self.pins = pins
        self.program = Program.open(pins / "program")

    def reset(self) -> None:
        """No flows, good and bad nexthops, fresh budgets, a live daemon."""
        for key, _ in list(self.datapath.flows.items()):
            self.datapath.flows.delete(key)
        to_endpoint = Nexthop(2, ENDPOINT[0], True, 1500, *ENDPOINT_MACS)
        to_client = Nexthop(1, "10.3.0.1", True, 1500, *CLIENT_MACS)
        self.datapath.write_nexthop(TO_ENDPOINT, to_endpoint)
        self.datapath.write_nexthop(TO_CLIENT, to_client)
        self.datapath.write_nexthop(UNRESOLVED, Nexthop(2, "10.2.0.3"))
        self.datapath.write_nexthop(NO_PORT, Nexthop(9, "10.2.0.4", True))
        self.datapath.write_nexthop(SMALL, Nexthop(2, "10.2.0.5", True, 576))
        for index, tags in ((TAGGED, (5, 0)), (STACKED, (6, 7))):
            nexthop = Nexthop(4, "10.2.0.6", True, 1500, *ENDPOINT_MACS, tags)
            self.datapath.write_nexthop(index, nexthop)
        self.refill()
        self.datapath.write_keys({KEY.id: KEY})
        self.datapath.beat(now())

    def refill(self) -> None:
        """Nothing is spent of the budgets that these tests use up; each token has its own."""
        punts = [reason for reason in Reason if reason.name.startswith("PUNT")]
        slots = [*punts, RETURN_SLOT, RETURN_SLOT_V6, ORPHAN_SLOT, ORPHAN_SLOT_V6]
        nothing = bytes(8 * possible_cpus())
        with Map.open(self.pins / "budgets") as budgets:
            for slot in slots:
                budgets.update(slot.to_bytes(4, "little"), nothing)

    def install(self, client: Address = CLIENT, vip: int = 1, **changes: Any) -> FlowKey:
        fields: dict[str, Any] = {
            "endpoint": ENDPOINT,
            "cluster": cluster_of(changes.get("endpoint", ENDPOINT)),
            "sport": SPORT,
            "nexthop_in": TO_ENDPOINT,
            "nexthop_out": TO_CLIENT,
            "born": now(),
        }
        key = FlowKey(client, vip)
        flow = Flow(**fields | changes)
        assert self.datapath.flows.install(key, flow)
        return key

    def flow(self, key: FlowKey) -> Flow:
        found = self.datapath.flows.get(key)
        assert found is not None
        return found

    def send(self, frame: bytes, interface: str = OUTER, *, metadata: int = 0) -> Outcome:
        """Run one frame. It counts exactly one reason, once."""
        ingress = ifindex(interface)
        with self.counted() as counts:
            run = self.program.test_run(bytes(metadata) + frame, ifindex=ingress, metadata=metadata)
        ((reason, times),) = counts.items()
        assert times == 1
        return Outcome(reason, run.verdict, run.data[metadata:])

    def repeat(self, frame: bytes, times: int, interface: str = OUTER) -> dict[Reason, int]:
        """Run a frame that is not modified many times; reasons and how often."""
        return self.run([frame], interface, times=times)

    def run(
        self, frames: Iterable[bytes], interface: str = OUTER, *, times: int = 1
    ) -> dict[Reason, int]:
        """Run each of many frames that are not modified; reasons and how often."""
        ingress = ifindex(interface)
        with self.counted() as counts:
            for frame in frames:
                self.program.test_run(frame, ifindex=ingress, repeat=times)
        return counts

    @contextmanager
    def counted(self) -> Iterator[dict[Reason, int]]:
        before = self.datapath.reasons()
        counts: dict[Reason, int] = {}
        yield counts
        after = self.datapath.reasons()
        counts |= {r: after[r] - before[r] for r in after if after[r] != before[r]}
