"""The XDP datapath as the daemon builds it: program, maps, nexthops, attachment."""

import asyncio
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from relayctl.config import RelayConfig
from relayctl.control.netlink import Events, Kernel
from relayctl.control.nexthops import Nexthops
from relayctl.datapath import xdp
from relayctl.datapath.base import DatapathError
from relayctl.datapath.compile import discard
from relayctl.datapath.spec import Interface, Mode, Role, Spec, Vip
from relayctl.datapath.xdp import XdpDatapath
from relayctl.messages import Message, RetireNexthop, RouteEntry, RoutesPart, parts
from relayctl.routes import Route


@dataclass(slots=True)
class KernelSide:
    """Everything that only the XDP datapath has."""

    pins: Path
    datapath: XdpDatapath
    nexthops: Nexthops
    interfaces: tuple[Interface, ...]
    mode: Mode
    events: Events
    kernel: Kernel
    on_trial: bool  # the pins are new, and nothing was ever attached

    @classmethod
    async def load(cls, config: RelayConfig, send: Callable[[Message], bool]) -> "KernelSide":
        """Compile the program, make or adopt its maps. Attaches nothing. `send` reaches the packet
        process. Raises `DatapathError`."""
        kernel = Kernel()
        try:
            spec = spec_of(config, await kernel.addresses())
            loaded = await asyncio.to_thread(xdp.load, spec)
            datapath = XdpDatapath.open(spec.pins)
        except BaseException:
            kernel.close()
            raise
        events = Events()
        nexthops = Nexthops(
            datapath,
            {interface.ifindex: interface.port for interface in spec.interfaces},
            events,
            kernel,
            RoutePublisher(send).publish,
            lambda index: send(RetireNexthop(index)),
        )
        return cls(
            spec.pins,
            datapath,
            nexthops,
            spec.interfaces,
            Mode(config.xdp_mode),
            events,
            kernel,
            on_trial=not loaded.adopted,
        )

    def attach(self) -> None:
        """From here on packets meet the program. Raises `DatapathError`."""
        self.datapath.attach(self.interfaces, self.mode)
        self.on_trial = False

    @property
    def ports(self) -> dict[int, int]:
        return {interface.ifindex: interface.port for interface in self.interfaces}

    def close(self) -> None:
        """What is attached stays attached. A start that did not get so far leaves no pins, which
        the next one, with the mended configuration, might not be able to adopt."""
        self.events.close()
        self.kernel.close()
        self.datapath.close()
        if self.on_trial:
            discard(self.pins)


class RoutePublisher:
    """Sends route tables, each under a generation of its own."""

    def __init__(self, send: Callable[[Message], bool]) -> None:
        self._send = send
        self._generation = 0

    def publish(self, routes: Iterable[Route]) -> bool:
        self._generation += 1
        entries = [_entry(route) for route in routes]
        return all(self._send(RoutesPart(self._generation, *part)) for part in parts(entries))


def _entry(route: Route) -> RouteEntry:
    hops = tuple((hop.port, hop.gateway, hop.mtu) for hop in route.hops)
    return RouteEntry(str(route.network), hops, route.metric)


def spec_of(config: RelayConfig, own: Iterable[str]) -> Spec:
    """What the program is compiled for. `own` are this host's addresses. Raises `DatapathError`."""
    return Spec(
        instance=config.instance,
        vips=tuple(Vip(vip.id, vip.public, vip.local) for vip in config.vips),
        interfaces=tuple(
            Interface(each.name, _index(each.name), port, Role(each.role))
            for port, each in enumerate(config.interfaces, 1)
        ),
        inner_address=config.inner_address,
        allow=tuple(
            network
            for cluster in config.clusters
            for network in cluster.allow
            if isinstance(network, IPv4Network)
        ),
        inner_port_base=config.inner_port_base,
        inner_ports=config.inner_ports,
        max_flows=config.max_flows,
        own=tuple(sorted(set(own))),
        allow_inner_clients=config.allow_inner_clients,
        bpffs=str(config.bpffs),
    )


def _index(name: str) -> int:
    try:
        return socket.if_nametoindex(name)
    except OSError:
        raise DatapathError(
            f"interface.name = '{name}': there is none; `ip link` lists them"
        ) from None
