"""Where the services of a test stand: in a lab's namespaces, or all on 127.0.0.1.

Everything built on a `Site` runs with root in the lab and without it on loopback.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from relayctl.wire.address import Address, render
from tests.lab import topology
from tests.lab.node import Node
from tests.lab.program import Programs, stop_listed
from tests.lab.topology import Lab

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class RelayPlace:
    """Where one more relay of the VIP stands."""

    instance: str
    node: Node
    inner: str
    admin: Address


@dataclass(frozen=True)
class Site:
    """Nodes and addresses. `interfaces` is empty where there is no XDP. The relay that has fields
    of its own is the first one."""

    instance: str  # of the relay
    directory: Path  # configuration and logs
    host: Node  # the machine itself
    client: Node
    relay: Node
    transceiver: Node
    signaling: Node
    client_host: str
    vip: Address
    relay_inner: str
    relay_admin: Address
    endpoint: Address  # of the transceiver
    signaling_address: Address
    allow: str  # the transceivers' network
    interfaces: tuple[tuple[str, str], ...] = ()  # name, role
    more_relays: tuple[RelayPlace, ...] = ()

    @property
    def relays(self) -> tuple[RelayPlace, ...]:
        first = RelayPlace(self.instance, self.relay, self.relay_inner, self.relay_admin)
        return (first, *self.more_relays)

    def at_relay(self, n: int) -> "Site":
        """The same site with relay `n` as the first one."""
        first, *others = self.relays[n:] + self.relays[:n]
        return replace(
            self,
            instance=first.instance,
            relay=first.node,
            relay_inner=first.inner,
            relay_admin=first.admin,
            more_relays=tuple(others),
        )

    @property
    def dev_local(self) -> bool:
        """All on loopback: client and transceiver share a network."""
        return not self.interfaces

    @property
    def base_url(self) -> str:
        return f"http://{render(self.signaling_address)}"

    @property
    def calls_url(self) -> str:
        return f"{self.base_url}/v1/realtime/calls"

    @property
    def admin_url(self) -> str:
        return f"http://{render(self.relay_admin)}"

    @property
    def transceiver_url(self) -> str:
        return f"http://{render(self.endpoint)}"


def in_lab(lab: Lab) -> Site:
    return Site(
        instance=f"{lab.prefix}relay-a",
        directory=lab.directory,
        host=lab.host,
        client=lab.client,
        relay=lab.relay,
        transceiver=lab.transceivers[0],
        signaling=lab.signaling,
        client_host=topology.CLIENT,
        vip=(topology.VIP, 3478),
        relay_inner=topology.RELAY_INNER,
        relay_admin=(topology.RELAY_INNER, 9100),
        endpoint=(topology.TRANSCEIVERS[0], 5000),
        signaling_address=(topology.SIGNALING, 8080),
        allow="10.2.0.0/24",
        interfaces=(("outer0", "outer"), ("inner0", "inner")),
        more_relays=tuple(
            RelayPlace(f"{lab.prefix}relay-b", node, inner, (inner, 9100))
            for node, inner in zip(lab.relays[1:], topology.RELAYS_INNER[1:], strict=False)
        ),
    )


class LoopbackPlace:
    """A directory and a pid list for services on 127.0.0.1. A context manager, like `Lab`.

    Two of them need different names and bases: `port_base` + 0…3 are VIP, transceiver, admin and
    signaling, the relay's inner ports follow from + 16.
    """

    def __init__(self, name: str, port_base: int, vip_host: str = _LOOPBACK) -> None:
        self.vip_host = vip_host
        self.directory = topology.directory_of(name)
        self.port_base = port_base

    def __enter__(self) -> "LoopbackPlace":
        stop_listed(self.directory)
        shutil.rmtree(self.directory, ignore_errors=True)
        self.programs = Programs(self.directory)
        self._kept = False
        return self

    def __exit__(self, *_: object) -> None:
        if not self._kept:
            self.programs.stop_all()

    def keep(self) -> None:
        """Let the programs live on after this process: `stop_listed` ends them."""
        self._kept = True

    def site(self) -> Site:
        node = Node(None, self.programs)
        base = self.port_base
        return Site(
            instance="relay-a",
            directory=self.directory,
            host=node,
            client=node,
            relay=node,
            transceiver=node,
            signaling=node,
            client_host=_LOOPBACK,
            vip=(self.vip_host, base),
            relay_inner=_LOOPBACK,
            relay_admin=(_LOOPBACK, base + 2),
            endpoint=(_LOOPBACK, base + 1),
            signaling_address=(_LOOPBACK, base + 3),
            allow="127.0.0.0/8",
        )
