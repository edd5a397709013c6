"""The product's own program, maps and attachment, driven packet by packet without a NIC.

`Rig.send` runs one frame through BPF_PROG_TEST_RUN and tells verdict, bytes and counted reason.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from relayctl.datapath.base import Nexthop
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.libbpf import Program
from relayctl.datapath.spec import Interface, Role, Spec, Vip
from relayctl.datapath.xdp import XdpDatapath
from relayctl.flow import Flow, FlowKey, units
from relayctl.reason import Reason

CLIENT = ("192.0.2.77", 40000)
VIP = ("203.0.113.10", 3478)
NATTED_PUBLIC = ("203.0.113.99", 443)  # VIP 2, behind a 1:1 NAT
NATTED_LOCAL = ("10.9.8.7", 3478)
INNER = "10.2.0.1"
ENDPOINT = ("10.2.0.2", 5000)
SPORT = 5107
OUTER, INNER_SIDE, BOTH = "outer0", "inner0", "both0"  # interfaces
LOOPBACK = "lo"  # an interface that the program has no role for
TO_ENDPOINT, TO_CLIENT, UNRESOLVED, NO_PORT, SMALL = 1, 2, 3, 4, 5  # nexthops
ENDPOINT_MACS = (bytes.fromhex("020000000201"), bytes.fromhex("020000000202"))
CLIENT_MACS = (bytes.fromhex("020000000101"), bytes.fromhex("020000000102"))

_CLOCK_MONOTONIC_COARSE = 6


def now() -> int:
    return units(time.clock_gettime_ns(_CLOCK_MONOTONIC_COARSE))


def fresh_unit(room: float = 0.5) -> None:
    """Wait until the present unit of time has at least `room` of it left."""
    left = 1 - (time.clock_gettime_ns(_CLOCK_MONOTONIC_COARSE) % (1 << 30)) / (1 << 30)
    if left < room:
        time.sleep(left * 1.08 + 0.01)


def ifindex(interface: str) -> int:
    """Number of an interface; 0 stands for the loopback in a test run."""
    return 0 if interface == LOOPBACK else socket.if_nametoindex(interface)


def spec(bpffs: Path, instance: str, **changes: Any) -> Spec:
    """The node of these tests; its interfaces have to exist."""
    node: dict[str, Any] = {
        "instance": instance,
        "vips": (Vip(1, VIP, VIP), Vip(2, NATTED_PUBLIC, NATTED_LOCAL)),
        "interfaces": (
            Interface(OUTER, ifindex(OUTER), 1, Role.OUTER),
            Interface(INNER_SIDE, ifindex(INNER_SIDE), 2, Role.INNER),
            Interface(BOTH, ifindex(BOTH), 3, Role.BOTH),
        ),
        "inner_address": INNER,
        "allow": (IPv4Network("10.2.0.0/24"), IPv4Network("10.77.0.0/16")),
        "max_flows": 1024,
        "own": ("10.3.0.2",),
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
        """No flows, four good and bad nexthops, fresh budgets, a live daemon."""
        for key, _ in list(self.datapath.flows.items()):
            self.datapath.flows.delete(key)
        to_endpoint = Nexthop(2, ENDPOINT[0], INNER, True, 1500, *ENDPOINT_MACS)
        to_client = Nexthop(1, "10.3.0.1", "10.3.0.2", True, 1500, *CLIENT_MACS)
        self.datapath.write_nexthop(TO_ENDPOINT, to_endpoint)
        self.datapath.write_nexthop(TO_CLIENT, to_client)
        self.datapath.write_nexthop(UNRESOLVED, Nexthop(2, "10.2.0.3", INNER))
        self.datapath.write_nexthop(NO_PORT, Nexthop(9, "10.2.0.4", INNER, True))
        self.datapath.write_nexthop(SMALL, Nexthop(2, "10.2.0.5", INNER, True, 576))
        with Map.open(self.pins / "budgets") as budgets:
            for reason in range(64):
                used = len(budgets.lookup_per_cpu(reason.to_bytes(4, "little")))
                budgets.update(reason.to_bytes(4, "little"), bytes(8 * used))
        self.datapath.beat(now())

    def install(self, client: tuple[str, int] = CLIENT, vip: int = 1, **changes: Any) -> FlowKey:
        fields: dict[str, Any] = {
            "endpoint": ENDPOINT,
            "cluster": 7,
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
        return Outcome(reason, run.verdict, run.data)

    def repeat(self, frame: bytes, times: int, interface: str = OUTER) -> dict[Reason, int]:
        """Run a frame that is not modified many times; reasons and how often."""
        with self.counted() as counts:
            self.program.test_run(frame, ifindex=ifindex(interface), repeat=times)
        return counts

    @contextmanager
    def counted(self) -> Iterator[dict[Reason, int]]:
        before = self.datapath.reasons()
        counts: dict[Reason, int] = {}
        yield counts
        after = self.datapath.reasons()
        counts |= {r: after[r] - before[r] for r in after if after[r] != before[r]}
