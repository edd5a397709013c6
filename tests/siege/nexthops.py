"""Whom the relay sends packets to next changes, while thousands a second go that way.

A neighbour gets another MAC address and says so; a route moves to another gateway and back. What
leaves with the old MAC address until the new one stands in the map is lost, no more: the packets of
the time between the change and the write.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from relayctl.datapath.base import unpack_nexthop
from relayctl.datapath.bpf_map import Map
from relayctl.flow import FlowKey
from tests.figures.measurement import Findings, Measurement, expect
from tests.report import Target
from tests.siege.newcomers import Echo
from tests.siege.stage import Stage, mac, stage
from tests.siege.stream import Stream, burst_for, stream

CHANGES = 50  # of each kind
RATE = 20_000.0  # packets a second
PAUSE_S = 0.05
TARGETS = (
    Target("nexthop_changes_followed", "=", 2 * CHANGES, "changes"),
    Target("nexthop_followed_p50", "≤", 10, "ms"),
    Target("nexthop_lost_beyond_the_change", "=", 0, "packets"),
)
Begin = Callable[[], None]
"""Called when the change is about to be made."""

MACS = bytes.fromhex("020000000a01"), bytes.fromhex("020000000a02")
GATEWAYS = "10.2.0.11", "10.2.0.12"  # nobody has these addresses: the sink sees all the same
BEHIND = "10.2.0.9"  # an endpoint behind them

_VIP = 1
_LOOK_S = 0.0002
_GRACE_S = 0.003  # a look at the map, and what the generator makes up for at once
_PATIENCE_S = 5.0
_PERMANENT = 0x80  # NUD_PERMANENT


def measurements(quick: bool) -> list[Measurement]:
    return [Measurement("nexthop_changes", TARGETS, partial(measure, CHANGES))]


@dataclass(frozen=True)
class Change:
    """How long the map took, and how many packets left with the old address."""

    seconds: float
    stale: int

    def excess(self, rate: float) -> int:
        """Packets lost beyond those of that time, and a little more."""
        return max(0, self.stale - round((self.seconds + _GRACE_S) * rate))


def measure(changes: int) -> Findings:
    with stage() as scene, scene.calls(1):
        neighbour = _neighbour(scene, changes)
        route = _route(scene, changes)
    made = [*neighbour[0], *route[0]]
    followed = [change for change in made if change.seconds < _PATIENCE_S]
    excess = sum(change.excess(RATE) for change in followed)
    return Findings(
        {
            "nexthop_changes_followed": len(followed),
            "nexthop_followed_p50": median(change.seconds * 1e3 for change in made),
            "nexthop_lost_beyond_the_change": excess + neighbour[1] + route[1],
        },
        {"rate": RATE, "neighbour": _told(neighbour), "route": _told(route)},
    )


def _neighbour(scene: Stage, changes: int) -> tuple[list[Change], int]:
    node = scene.site.transceiver
    node.sysctl({"net.ipv4.conf.eth0.arp_notify": "1"})
    first = mac(node, "eth0")

    def change(ip: Any, number: int, begin: Begin) -> None:
        index = _index(ip, "eth0")
        begin()
        ip.link("set", index=index, address=_address(number).hex(":"))

    def apply(number: int, begin: Begin) -> None:
        node.netlink(lambda ip: change(ip, number, begin))

    echo = Echo(node, scene.site.endpoint[0])
    with echo, stream(scene, echo, node, "eth0") as load:
        return _change(scene, load, first, apply, changes)


def _route(scene: Stage, changes: int) -> tuple[list[Change], int]:
    node, relay = scene.site.transceiver, scene.site.relay
    node.netlink(lambda ip: ip.addr("add", index=_index(ip, "eth0"), address=BEHIND, prefixlen=32))
    relay.netlink(_know_gateways)
    first = mac(node, "eth0")

    def change(ip: Any, number: int, begin: Begin) -> None:
        begin()
        ip.route("replace", dst=f"{BEHIND}/32", gateway=GATEWAYS[number % 2])

    def apply(number: int, begin: Begin) -> None:
        relay.netlink(lambda ip: change(ip, number, begin))

    echo = Echo(node, BEHIND)
    with echo, stream(scene, echo, node, "eth0") as load:
        return _change(scene, load, first, apply, changes)


def _address(number: int) -> bytes:
    return MACS[number % 2]


def _know_gateways(ip: Any) -> None:
    for gateway, address in zip(GATEWAYS, MACS, strict=True):
        index, lladdr = _index(ip, "inner0"), address.hex(":")
        ip.neigh("replace", ifindex=index, dst=gateway, lladdr=lladdr, state=_PERMANENT)


def _change(
    scene: Stage,
    load: Stream,
    first: bytes,
    apply: Callable[[int, Begin], None],
    changes: int,
) -> tuple[list[Change], int]:
    """The changes, and how many packets came nowhere at all."""
    load.sink.want(first)
    before = load.sink.seen()
    made = []
    with _entry(scene, load) as read, load.source.going_on(RATE, burst_for(RATE)) as sent:
        time.sleep(PAUSE_S)
        expect(load.sink.seen().stale == before.stale, "the stream begins with a wrong address")
        for number in range(changes):
            stale, wanted = load.sink.seen().stale, _address(number)
            began: list[float] = []

            def begin(wanted: bytes = wanted, began: list[float] = began) -> None:
                load.sink.want(wanted)
                began.append(time.monotonic())

            apply(number, begin)
            while read() != wanted and time.monotonic() < began[0] + _PATIENCE_S:
                time.sleep(_LOOK_S)
            took = time.monotonic() - began[0]
            time.sleep(PAUSE_S)
            made.append(Change(took, load.sink.seen().stale - stale))
    time.sleep(PAUSE_S)
    return made, sent[0].frames - (load.sink.seen().packets - before.packets)


@contextmanager
def _entry(scene: Stage, load: Stream) -> Iterator[Callable[[], bytes]]:
    """Reads the MAC address that the stream's packets get."""
    with scene.datapath() as datapath, Map.open(scene.pins / "nexthops") as nexthops:
        flow = datapath.flows.get(FlowKey(load.client, _VIP))
        expect(flow is not None and flow.nexthop_in, "the stream has no nexthop")
        assert flow is not None
        key = flow.nexthop_in.to_bytes(4, "little")

        def read() -> bytes:
            nexthop = unpack_nexthop(nexthops.lookup(key) or b"")
            return nexthop.destination_mac if nexthop else b""

        yield read


def _told(found: tuple[list[Change], int]) -> dict[str, Any]:
    made, vanished = found
    return {
        "changes": len(made),
        "followed_ms_max": round(max(change.seconds for change in made) * 1e3, 2),
        "followed_ms_p50": round(median(change.seconds for change in made) * 1e3, 2),
        "with_the_old_address": [change.stale for change in made],
        "came_nowhere": vanished,
    }


def _index(ip: Any, interface: str) -> int:
    index: int = ip.link_lookup(ifname=interface)[0]
    return index
