"""Faults of what the relay is plugged into: a neighbour with another MAC address, a cable out."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Literal

from pyroute2.netlink.rtnl import RTMGRP_NEIGH

from tests.chaos.scenario import Fault, Scenario
from tests.chaos.stage import Stage
from tests.figures.measurement import MeasurementError
from tests.lab.node import Node
from tests.report import Target

DOWN_S = 2.0
HEARD_S = 5.0  # for the relay's kernel to hear of another MAC address
APPLIED_S = 0.02  # from the kernel's event to the nexthop table
LATEST_MS = 200  # for the neighbour's word to become the kernel's event

_FORWARDING = "3"  # BR_STATE_FORWARDING

Leg = Literal["outer", "inner"]
# The neighbour whose address changes, and its interface.
_NEIGHBOURS = {"outer": ("router", "relay0"), "inner": ("transceiver-1", "eth0")}
# The far end of the relay's cable: the relay itself sees its carrier go.
_FAR_ENDS = {"outer": ("router", "relay0"), "inner": ("inner", "relay-a")}


def scenarios() -> list[Scenario]:
    return [
        *(
            _mac_scenario(leg, inject)
            for leg, inject in (("outer", outer_mac), ("inner", inner_mac))
        ),
        *(_link_scenario(each) for each in (outer_link_down, inner_link_down)),
    ]


def _mac_scenario(leg: str, inject: Any) -> Scenario:
    name = f"{leg}_mac"
    targets = (
        Target(f"{name}_heard", "≤", LATEST_MS, "ms"),
        Target(f"{name}_lost_up", "=", 0, "packets"),
        Target(f"{name}_lost_down", "=", 0, "packets"),
        Target(f"{name}_calls_lost", "=", 0, "calls"),
    )
    return Scenario(name, targets, inject)


def _link_scenario(inject: Any) -> Scenario:
    name = inject.__name__
    bound = DOWN_S * 1e3 + 100
    targets = (
        Target(f"{name}_gap_up_max", "≤", bound, "ms"),
        Target(f"{name}_gap_down_max", "≤", bound, "ms"),
        Target(f"{name}_calls_lost", "=", 0, "calls"),
    )
    return Scenario(name, targets, inject)


def outer_mac(stage: Stage) -> Fault:
    """The router gets another MAC address and says so, as one does that took over for another.
    What is lost until the relay's kernel has heard it is the event's; from 20 ms after that nothing
    may be."""
    return _change_mac(stage, "outer")


def inner_mac(stage: Stage) -> Fault:
    """The transceiver's node gets another MAC address and says so. Counted as `outer_mac`."""
    return _change_mac(stage, "inner")


def outer_link_down(stage: Stage) -> Fault:
    """The cable between router and relay is out for 2 s."""
    return _pull(stage, "outer")


def inner_link_down(stage: Stage) -> Fault:
    """The cable between relay and inner switch is out for 2 s."""
    return _pull(stage, "inner")


def _forward_at_once(switch: Node, port: str) -> None:
    """As a switch's edge port does. Linux's bridge waits up to a second for the kernel to notice
    that the link is there, which is nothing of the relay's."""
    switch.run(["bridge", "link", "set", "dev", port, "state", _FORWARDING])


def _change_mac(stage: Stage, leg: Leg) -> Fault:
    name, interface = _NEIGHBOURS[leg]
    node = stage.lab.node(name)
    node.sysctl({f"net.ipv4.conf.{interface}.arp_notify": "1"})
    mac = "02:" + stage.random.getrandbits(40).to_bytes(5, "big").hex(":")
    with _neighbours(stage.site.relay) as events:
        changed = time.monotonic()
        node.netlink(partial(_set_mac, interface=interface, mac=mac))
        heard = _hear(events, mac)
    stage.moments["heard"] = heard
    return Fault(
        origin=heard + APPLIED_S,
        values={"heard": round(1e3 * (heard - changed), 1)},
        detail={"mac": mac},
    )


def _set_mac(ip: Any, interface: str, mac: str) -> None:
    ip.link("set", index=ip.link_lookup(ifname=interface)[0], address=mac)


@contextmanager
def _neighbours(node: Node) -> Iterator[socket.socket]:
    """A socket that hears what the kernel of `node` learns of its neighbours."""
    with node.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as events:
        events.bind((0, RTMGRP_NEIGH))
        events.settimeout(HEARD_S)
        yield events


def _hear(events: socket.socket, mac: str) -> float:
    wanted = bytes.fromhex(mac.replace(":", ""))
    deadline = time.monotonic() + HEARD_S
    with suppress(TimeoutError):
        while time.monotonic() < deadline:
            if wanted in events.recv(65536):
                return time.monotonic()
    raise MeasurementError(f"the relay's kernel heard of no {mac} in {HEARD_S:.0f} s")


def _pull(stage: Stage, leg: Leg) -> Fault:
    name, interface = _FAR_ENDS[leg]
    node = stage.lab.node(name)
    node.set_link(interface, up=False)
    try:
        time.sleep(DOWN_S)
    finally:
        node.set_link(interface, up=True)
        if leg == "outer":  # the router's kernel dropped it with the link
            stage.lab.route_vip(0)
        else:
            _forward_at_once(node, interface)
    stage.note("plugged")
    return Fault()
