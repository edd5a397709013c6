"""Our own relay: the product's program with its maps, flows and nexthops written straight."""

import ipaddress
import struct
import time
from collections.abc import Sequence

from relayctl.datapath import xdp
from relayctl.datapath.base import Nexthop
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.spec import Interface, Mode, Role, Spec, Vip
from relayctl.datapath.xdp import XdpDatapath
from relayctl.flow import CONFIRMED, Flow, FlowKey, pack_flow, units
from relayctl.wire.cluster import Cluster
from tests.bench.rig import PREFIX, Rig
from tests.bench.subjects.base import Leg
from tests.bench.wire import (
    CLIENT_PREFIX,
    CLIENTS_PER_HOST,
    ENDPOINT_PORT,
    FAMILIES,
    FIRST_CLIENT,
    FIRST_CLIENT_PORT,
    HOSTS,
    MACS,
    SPORT,
    VIP,
    Family,
)

CLUSTER: dict[Family, int] = {4: 7, 6: 8}
ENDPOINT_PREFIX = ipaddress.IPv6Network(HOSTS[6]["sink0"]).supernet(new_prefix=96)
TO_ENDPOINT, TO_CLIENT = 1, 2  # nexthops
VIP_ID: dict[Family, int] = {4: 1, 6: 2}


class Ferryline:
    def __init__(
        self,
        rig: Rig,
        ways: Sequence[Leg],
        *,
        name: str = "Ferryline",
        outer: Family = 4,
        inner: Family = 4,
        max_flows: int = 1 << 16,
        mode: Mode = Mode.NATIVE,
        transparent: bool = False,
    ) -> None:
        self._rig = rig
        self.name = name
        self.legs = tuple(ways)
        self._outer, self._inner, self._mode = outer, inner, mode
        self.spec = _spec(rig, {outer: max_flows}, transparent, mode)
        self._datapath: XdpDatapath | None = None
        self._installed = 0

    def pids(self) -> list[int]:
        return []

    def start(self) -> None:
        xdp.unload(self.spec.instance)
        self.loaded = xdp.load(self.spec)
        self._datapath = XdpDatapath.open(self.spec.pins)
        self._write_nexthops(self._datapath)

    def carry(self, flows: int) -> None:
        assert self._datapath is not None
        if self._installed < flows:
            install(self.spec, self._outer, self._inner, flows)
            self._installed = flows
        self.keep_alive(flows)
        datapath = self._datapath
        self._rig.relay.call(lambda: datapath.attach(self.spec.interfaces, self._mode))

    def keep_alive(self, flows: int) -> None:
        assert self._datapath is not None
        self._datapath.beat(now())

    def counts(self) -> dict[str, int]:
        """What the program counted since it was loaded, by reason."""
        assert self._datapath is not None
        return {reason.label: n for reason, n in self._datapath.reasons().items() if n}

    def rest(self) -> None:
        datapath = self._datapath
        if datapath is not None:
            self._rig.relay.call(lambda: datapath.attach(()))

    def stop(self) -> None:
        self.rest()
        if self._datapath is not None:
            self._datapath.close()
            self._datapath = None
        xdp.unload(self.spec.instance)

    def _write_nexthops(self, datapath: XdpDatapath) -> None:
        ways = (
            (TO_ENDPOINT, 2, "inner0", "sink0", self._inner),
            (TO_CLIENT, 1, "outer0", "gen0", self._outer),
        )
        for index, port, near, far, family in ways:
            datapath.write_nexthop(index, _nexthop(port, near, far, family))


def now() -> int:
    return units(time.monotonic_ns())


def install(spec: Spec, outer: Family, inner: Family, flows: int) -> None:
    """Write `flows` confirmed flows, in batches."""
    value = pack_flow(
        Flow(
            endpoint=(HOSTS[inner]["sink0"], ENDPOINT_PORT),
            cluster=CLUSTER[inner],
            sport=SPORT,
            nexthop_in=TO_ENDPOINT,
            nexthop_out=TO_CLIENT,
            flags=CONFIRMED,
            born=now(),
        )
    )
    with Map.open(spec.pins / f"flows_v{outer}") as table:
        table.update_batch(keys_of(outer, flows), value * flows)


def keys_of(family: Family, flows: int) -> bytes:
    """Keys of clients 0 … `flows` - 1, joined."""
    sample = FlowKey((_host(family, 0), 0), VIP_ID[family])
    head, tail = (b"", sample[6:]) if family == 4 else (CLIENT_PREFIX + b"\0\0", sample[18:])
    ports = [struct.pack("!H", FIRST_CLIENT_PORT + i) for i in range(CLIENTS_PER_HOST)]
    return b"".join(
        head
        + struct.pack("!I", FIRST_CLIENT + i // CLIENTS_PER_HOST)
        + ports[i % CLIENTS_PER_HOST]
        + tail
        for i in range(flows)
    )


def _host(family: Family, low: int) -> str:
    if family == 4:
        return str(ipaddress.IPv4Address(low))
    return str(ipaddress.IPv6Address(CLIENT_PREFIX + bytes(2) + low.to_bytes(4, "big")))


def _nexthop(port: int, near: str, far: str, family: Family) -> Nexthop:
    return Nexthop(
        port=port,
        gateway=HOSTS[family][far],
        valid=True,
        source_mac=MACS[near],
        destination_mac=MACS[far],
    )


def _spec(rig: Rig, max_flows: dict[Family, int], transparent: bool, mode: Mode) -> Spec:
    """A node of both families, whatever is measured: everything is compiled in."""
    roles = (("outer0", Role.OUTER), ("inner0", Role.INNER))
    return Spec(
        instance=f"{PREFIX}bench",
        vips=tuple(Vip(VIP_ID[family], VIP[family], VIP[family]) for family in FAMILIES),
        interfaces=tuple(
            Interface(name, rig.ifindex(name), port, role)
            for port, (name, role) in enumerate(roles, 1)
        ),
        inner_addresses=() if transparent else tuple(HOSTS[f]["inner0"] for f in FAMILIES),
        clusters=(
            Cluster(CLUSTER[4], (ipaddress.ip_network(HOSTS[4]["sink0"]),)),
            Cluster(CLUSTER[6], (ipaddress.ip_network(HOSTS[6]["sink0"]),), ENDPOINT_PREFIX),
        ),
        max_flows=max_flows.get(4, 1024),
        max_flows_v6=max_flows.get(6, 1024),
        transparent=transparent,
        mode=mode,
    )
