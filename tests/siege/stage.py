"""Where sieges happen: the lab with calls going on, and an attacker on a cable of his own.

    client -- hop -- router -- relay-a -- inner -- transceiver-1
                                  |
                               attacker

The cable into the relay's second outer interface is the attacker's alone: a veth holds 256 packets,
and what a flood overruns there is lost before any program of the relay could be to blame.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from relayctl.datapath.spec import pin_directory
from relayctl.datapath.xdp import XdpDatapath
from tests.clients.lean_driver import LeanDriver
from tests.figures.measurement import expect
from tests.lab import namespace
from tests.lab.deployment import Deployment, Place
from tests.lab.node import Node
from tests.lab.service_config import Datapath
from tests.lab.services import Services
from tests.lab.site import Site, in_lab
from tests.lab.topology import BPFFS, TRANSCEIVERS, Lab

PREFIX = "s-"  # of the namespaces; sieges are laid one after another
CALLS = 4
SECOND_PORT = 8081  # of the second transceiver's signaling
ATTACKERS_END, RELAYS_END = "flood0", "outer1"

_SETTLES_S = 0.3
Macs = tuple[bytes, bytes]


@dataclass(frozen=True)
class Stage:
    lab: Lab
    services: Services
    attacker: Node
    macs: Macs  # of a frame from the attacker: destination, source

    @property
    def site(self) -> Site:
        return self.services.site

    @property
    def deployment(self) -> Deployment:
        """As other tests know it."""
        place: Place = self.services.setup.datapath
        return Deployment(place, self.services, self.lab)

    @property
    def pins(self) -> Path:
        return pin_directory(BPFFS, self.site.instance)

    @contextlib.contextmanager
    def calls(self, count: int = CALLS) -> Iterator[LeanDriver]:
        """So many calls that talk, whose packets are counted at both ends."""
        site, options = self.site, ("--calls", str(count))
        with LeanDriver.start(site.client, site.calls_url, site.client_host, *options) as lean:
            states = [call["state"] for call in lean.first["calls"]]
            expect(states == ["connected"] * count, f"calls at the beginning: {states}")
            yield lean

    @contextlib.contextmanager
    def datapath(self) -> Iterator[XdpDatapath]:
        """The relay's maps."""
        opened = XdpDatapath.open(self.pins)
        try:
            yield opened
        finally:
            opened.close()

    @contextlib.contextmanager
    def second(self) -> Iterator[Services]:
        """Another transceiver with signaling of its own, at the same relay."""
        site = self.site
        directory = site.directory / "second"
        directory.mkdir(exist_ok=True)
        other = Services(
            replace(
                site,
                directory=directory,
                transceiver=self.lab.transceivers[1],
                endpoint=(TRANSCEIVERS[1], site.endpoint[1]),
                signaling_address=(site.signaling_address[0], SECOND_PORT),
            ),
            echo="opus",
        )
        other.setup = self.services.setup
        other.write("route.keys", (site.directory / "route.keys").read_text())
        try:
            other.start_transceiver()
            other.start_signaling()
            yield other
        finally:
            while other.programs:
                other.programs.popitem()[1].stop()


@contextlib.contextmanager
def stage(
    datapath: Datapath = "xdp", *, transceivers: int = 1, max_flows: int | None = None
) -> Iterator[Stage]:
    """Everything up, everything gone at the end."""
    with contextlib.ExitStack() as stack:
        lab = stack.enter_context(Lab(PREFIX, transceivers=transceivers))
        attacker = stack.enter_context(_attacker(lab))
        macs = mac(lab.relay, RELAYS_END), mac(attacker, ATTACKERS_END)
        site = in_lab(lab)
        site = replace(site, interfaces=(*site.interfaces, (RELAYS_END, "outer")))
        services = Services(site, datapath=datapath, echo="opus")
        if max_flows is not None:
            services.setup = replace(services.setup, max_flows=max_flows)
        yield Stage(lab, stack.enter_context(services), attacker, macs)


def lost(lean: LeanDriver) -> dict[str, int]:
    """What the calls lost so far, up and down. They fall silent for a moment, so that nothing is
    under way. The endpoint mirrors each packet: what was not answered was lost on its way up. Its
    own report says the same up to 3 s later, too late to tell before from after."""
    time.sleep(_SETTLES_S)
    lean.ask("mute")
    time.sleep(_SETTLES_S)
    calls = lean.report()["calls"]
    lean.ask("unmute")
    states = {call["state"] for call in calls}
    expect(states == {"connected"}, f"calls at the end: {states}")
    return {way: sum(abs(call["lost"][way] or 0) for call in calls) for way in ("up", "down")}


def talk(lean: LeanDriver) -> dict[str, Any]:
    """How much the calls said and heard, for the report."""
    calls = lean.report()["calls"]
    return {
        "calls": len(calls),
        "sent": sum(call["sent"] for call in calls),
        "received": sum(call["received"] for call in calls),
        "longest_gap_ms": max(call["max_gap_ms"] for call in calls),
    }


def mac(node: Node, interface: str) -> bytes:
    def read(ip: Any) -> bytes:
        (link,) = ip.get_links(ip.link_lookup(ifname=interface)[0])
        return bytes.fromhex(link.get_attr("IFLA_ADDRESS").replace(":", ""))

    return node.netlink(read)


@contextlib.contextmanager
def _attacker(lab: Lab) -> Iterator[Node]:
    name = f"{lab.prefix}attacker"
    if namespace.exists(name):
        namespace.remove(name)
    namespace.create(name)
    try:
        node = Node(name, lab.programs)
        peer = {"ifname": RELAYS_END, "net_ns_fd": lab.relay.namespace}
        node.netlink(lambda ip: ip.link("add", ifname=ATTACKERS_END, kind="veth", peer=peer))
        for end, interface in ((node, ATTACKERS_END), (lab.relay, RELAYS_END)):
            end.sysctl({f"net.ipv4.conf.{interface}.rp_filter": "0"})  # it has no address
            end.offloads(interface, gro=True)
            end.netlink(partial(_bring_up, name=interface))
        yield node
    finally:
        namespace.remove(name)


def _bring_up(ip: Any, name: str) -> None:
    ip.link("set", index=ip.link_lookup(ifname=name)[0], state="up")
