"""The XDP datapath as the daemon builds it: program, maps, nexthops, attachment."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from relayctl.config import RelayConfig
from relayctl.control.netlink import Events, Kernel
from relayctl.control.nexthops import Nexthops
from relayctl.datapath import pins, xdp
from relayctl.datapath.base import PORTS
from relayctl.datapath.spec import Interface, Mode, Role, Spec, Vip, pin_directory
from relayctl.datapath.xdp import XdpDatapath
from relayctl.messages import Message, RetireNexthop, RouteEntry, RoutesPart, parts
from relayctl.peers import Peers
from relayctl.routes import Route
from relayctl.wire.address import Address


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
            spec = await spec_of(config, kernel)
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
            RoutePublisher(send),
            lambda index: send(RetireNexthop(index)),
            {interface.port: interface.tags for interface in spec.interfaces},
        )
        return cls(
            spec.pins,
            datapath,
            nexthops,
            spec.interfaces,
            spec.mode,
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
            pins.abandon(self.pins)


class RoutePublisher:
    """Sends route tables, each under a generation of its own, of any size through the pipe.

    One that was begun is sent to its end, however often routes change meanwhile; then comes the
    latest, unless it is the same: to take one in costs the packet process time.
    """

    def __init__(self, send: Callable[[Message], bool]) -> None:
        self._send = send
        self._generation = 0
        self._under_way: deque[RoutesPart] = deque()
        self._begun: list[RouteEntry] | None = None
        self._latest: list[RouteEntry] | None = None

    def publish(self, routes: Iterable[Route]) -> bool:
        """False while the pipe is full: `resume`."""
        self._latest = [_entry(route) for route in routes]
        return self.resume()

    def resume(self) -> bool:
        """Go on where the pipe was full. True when the latest table is out whole."""
        while self._under_way or self._begun != self._latest:
            if not self._under_way:
                self._begin(self._latest or [])
            if not self._send(self._under_way[0]):
                return False
            self._under_way.popleft()
        return True

    def forget(self) -> None:
        """The packet process is a new one, and has no routes."""
        self._under_way.clear()
        self._begun = None

    def _begin(self, table: list[RouteEntry]) -> None:
        self._generation += 1
        self._begun = table
        self._under_way.extend(RoutesPart(self._generation, *part) for part in parts(table))


def _entry(route: Route) -> RouteEntry:
    hops = tuple((hop.port, hop.gateway, hop.mtu) for hop in route.hops)
    return RouteEntry(str(route.network), hops, route.metric)


async def spec_of(config: RelayConfig, kernel: Kernel) -> Spec:
    """What the program is compiled for, on this host. Raises `DatapathError`."""
    names = [section.name for section in config.interfaces]
    carriers = await kernel.carriers(names)
    ports = egress_ports(names, pins.pinned_ports(pin_directory(config.bpffs, config.instance)))
    return Spec(
        instance=config.instance,
        vips=tuple(Vip(vip.id, vip.public, vip.local) for vip in config.vips),
        interfaces=tuple(
            Interface(
                each.name,
                carriers[each.name].ifindex,
                ports[each.name],
                Role(each.role),
                carriers[each.name].carrier,
                carriers[each.name].tags,
            )
            for each in config.interfaces
        ),
        inner_addresses=() if config.inner == "transparent" else config.inner_addresses,
        clusters=tuple(section.cluster() for section in config.clusters if not section.via),
        peers=tuple((peer.id, peer.address) for peer in config.peers),
        foreign_vips=_foreign_vips(config),
        inner_port_base=config.inner_port_base,
        inner_ports=config.inner_ports,
        max_flows=config.max_flows,
        max_flows_v6=config.max_flows_v6,
        own=tuple(sorted(set(await kernel.addresses()))),
        allow_inner_clients=config.allow_inner_clients,
        transparent=config.inner == "transparent",
        mode=Mode(config.xdp_mode),
        bpffs=str(config.bpffs),
    )


def _foreign_vips(config: RelayConfig) -> tuple[tuple[int, Address, tuple[int, ...]], ...]:
    peers = Peers(config.relays())
    return tuple(
        (vip, public, tuple(peer.id for peer in peers if peers.serves(peer.id, vip)))
        for vip, public in peers.public.items()
    )


def egress_ports(names: Iterable[str], pinned: Mapping[str, int]) -> dict[str, int]:
    """Port numbers of interfaces: pinned nexthops name them, so each keeps the one it had."""
    names = list(names)
    ports = {name: pinned[name] for name in names if name in pinned}
    free = (port for port in range(1, PORTS) if port not in pinned.values())
    return ports | {name: next(free) for name in names if name not in ports}
