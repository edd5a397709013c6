"""The XDP datapath: pinned maps that the kernel program and user space share.

    loaded = load(spec)                       # a child process compiles; maps are made or adopted
    datapath = XdpDatapath.open(spec.pins)    # nexthops, heartbeat: write them now
    datapath.attach(spec.interfaces, mode)    # from here on packets meet the program

Every handle is on its own; the control process, the packet process and the CLI hold one each. What
is pinned outlives them all, until `unload`. That only one daemon works on an instance is the
daemon's care: bpffs has no locks, so it holds one in its run directory before it calls `load`.
"""

import json
import logging
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from relayctl.datapath import links, maps
from relayctl.datapath.base import (
    PORTS,
    ROUTE_KEYS,
    DatapathError,
    Nexthop,
    PeerPlace,
    pack_nexthop,
    pack_peer,
    pack_route_key,
    unpack_nexthop,
)
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.compile import Loaded
from relayctl.datapath.libbpf import BpfError, Program
from relayctl.datapath.pins import discard, settle
from relayctl.datapath.spec import Interface, Mode, Spec, pin_directory
from relayctl.flow import Flow, FlowKey, Prefixes, pack_flow, unpack_flow
from relayctl.reason import SLOW_FROM, Reason
from relayctl.wire.route_token import Key

_COMPILE_S = 60.0  # seconds; it takes less than one

_log = logging.getLogger(__name__)


def load(spec: Spec, python: str = sys.executable) -> Loaded:
    """Compile the program and pin it with its maps; attach nothing. Blocks for about a second.

    Raises `DatapathError` with the last line that the child said; the others are logged.
    """
    command = [python, "-m", "relayctl.datapath.compile"]
    try:
        child = subprocess.run(
            command, input=spec.to_json(), capture_output=True, text=True, timeout=_COMPILE_S
        )
    except OSError as error:
        raise DatapathError(f"cannot start {python} to compile the XDP program: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise DatapathError(f"compiling the XDP program took over {_COMPILE_S:.0f} s") from error
    said = child.stderr.splitlines()
    if child.returncode:
        last = said.pop() if said else f"the compiler died ({child.returncode})"
        for line in said:  # complaints of the compiler, or the verifier's whole walk
            _log.error("%s", line)
        raise DatapathError(last)
    for line in said:
        _log.info("%s", line)
    return Loaded(**json.loads(child.stdout.splitlines()[-1]))


def unload(instance: str, bpffs: str = "/sys/fs/bpf") -> None:
    """Take the program off every interface and remove all pins, with the flows in them."""
    directory = pin_directory(bpffs, instance).parent
    links.detach(directory)
    for version in directory.glob("v*"):
        discard(version)
    if directory.is_dir():
        directory.rmdir()


def open_readonly(instance: str, bpffs: str = "/sys/fs/bpf") -> "XdpDatapath":
    """A handle for somebody who looks while the daemon may be down. Raises `DatapathError`."""
    pins = pin_directory(bpffs, instance)
    if not pins.is_dir():
        raise DatapathError(
            f"{pins} does not exist: relay {instance!r} was not started since the last boot, "
            "or keeps its pins elsewhere (bpffs, and `ip netns exec` hides /sys/fs/bpf)"
        )
    return XdpDatapath.open(pins)


class PinnedFlows:
    """The flow table: the maps `flows_v4` and `flows_v6`, by the client's family."""

    def __init__(self, v4: Map, v6: Map, prefixes: Prefixes) -> None:
        self._v4, self._v6 = v4, v6
        self._prefixes = prefixes
        self.capacity = v4.entries + v6.entries

    def _map(self, key: bytes) -> Map:
        return self._v4 if len(key) == self._v4.key_size else self._v6

    def get(self, key: FlowKey) -> Flow | None:
        value = self._map(key).lookup(key)
        return None if value is None else unpack_flow(value, self._prefixes)

    def install(self, key: FlowKey, flow: Flow) -> bool:
        """Write a new or re-pointed flow. False when its family's map is full."""
        return self._map(key).update_if_room(key, pack_flow(flow))

    def install_new(self, key: bytes, flow: bytes) -> bool:
        """Write a packed flow. False when the client has one, or its family's map is full."""
        return self._map(key).add(key, flow)

    def delete(self, key: FlowKey) -> bool:
        return self._map(key).delete(key)

    def items(self) -> Iterator[tuple[FlowKey, Flow]]:
        for pinned in (self._v4, self._v6):
            for key, value in pinned.items():
                yield FlowKey.read(key), unpack_flow(value, self._prefixes)

    def batches(self) -> Iterator[tuple[bytes, bytes]]:
        """Joined keys and joined values as they stand in the maps, for who decodes them at once.
        Keys of one batch have one size."""
        yield from self._v4.batches()
        yield from self._v6.batches()

    def close(self) -> None:
        self._v4.close()
        self._v6.close()


class XdpDatapath:
    """One handle on an instance's pins. Not for several threads."""

    def __init__(self, pins: Path) -> None:
        self._pins = pins
        self._nexthops = Map.open(pins / "nexthops")
        self._egress = Map.open(pins / "egress")
        self._keys = Map.open(pins / "keys")
        self._reasons = Map.open(pins / "reasons")
        self._slow_reasons = Map.open(pins / "slow_reasons")
        self._control = Map.open(pins / "control")
        # an older program of this layout has none
        self._peers = Map.open(pins / "peers") if (pins / "peers").exists() else None
        with Map.open(pins / maps.META.name) as meta:
            self.meta = maps.unpack_meta(meta.lookup(_index(0)) or b"")
        flows_v4, flows_v6 = Map.open(pins / "flows_v4"), Map.open(pins / "flows_v6")
        self._flows = PinnedFlows(flows_v4, flows_v6, maps.prefixes(self.meta))

    @classmethod
    def open(cls, pins: Path) -> "XdpDatapath":
        """Open what `load` pinned. Raises `DatapathError`."""
        return cls(pins)

    @property
    def name(self) -> str:
        """`xdp-native` or `xdp-generic`, as attached; `xdp-detached` before `attach`."""
        for ifindex in links.attached(self._pins.parent):
            if mode := links.mode_of(ifindex):
                return f"xdp-{mode}"
        return "xdp-detached"

    @property
    def flows(self) -> PinnedFlows:
        return self._flows

    def attach(self, interfaces: Iterable[Interface], mode: Mode = Mode.NATIVE) -> None:
        """Attach the pinned program to exactly these interfaces, or swap it in without a gap.

        Raises `DatapathError`, and then is on no interface that it was not on before.
        """
        interfaces = tuple(interfaces)
        before = frozenset(self.attached())
        self._write_egress(interfaces)
        carriers = {interface.carrier: interface.name for interface in interfaces}
        with Program.open(self._pins / "program") as program:
            try:
                for carrier, name in carriers.items():
                    links.attach(self._pins.parent, name, carrier, program, mode)
            except DatapathError:
                links.detach(self._pins.parent, keep=before)
                raise
        links.detach(self._pins.parent, keep=frozenset(carriers))
        settle(self._pins)

    def _write_egress(self, interfaces: tuple[Interface, ...]) -> None:
        wanted = {interface.port for interface in interfaces}
        for port in range(PORTS):
            if port not in wanted:
                self._egress.delete(_index(port))
        for interface in interfaces:
            try:
                self._egress.update(_index(interface.port), _index(interface.carrier))
            except BpfError as error:
                raise DatapathError(
                    f"{interface.name} (ifindex {interface.carrier}) is no interface to send "
                    f"from: {error}; `ip link` lists them"
                ) from error

    def attached(self) -> list[int]:
        """Interface indices that carry our program."""
        return links.attached(self._pins.parent)

    def nexthops(self) -> dict[int, Nexthop]:
        """The entries in use, by index."""
        found = {}
        for key, value in self._nexthops.items():
            if nexthop := unpack_nexthop(value):
                found[int.from_bytes(key, sys.byteorder)] = nexthop
        return found

    def write_nexthop(self, index: int, nexthop: Nexthop | None) -> None:
        self._nexthops.update(_index(index), pack_nexthop(nexthop))

    def write_peer(self, slot: int, place: PeerPlace | None) -> None:
        if self._peers:
            self._peers.update(_index(slot), pack_peer(place))

    def write_keys(self, keys: Mapping[int, Key]) -> None:
        """Let the token gate accept exactly these route keys, by id."""
        for id in range(ROUTE_KEYS):
            self._keys.update(_index(id), pack_route_key(keys.get(id)))

    def beat(self, now: int) -> None:
        """Tell the program that the packet process lives at stamp `now` (units)."""
        self._control.update(_index(0), _index(now))

    def alive(self) -> int:
        """Stamp of the last beat."""
        return int.from_bytes(self._control.lookup(_index(0)) or b"", sys.byteorder)

    def reasons(self) -> dict[Reason, int]:
        """Counters of the program and, since its last write, of the packet process."""
        counts = {}
        for reason in Reason:
            if reason < SLOW_FROM:
                values = self._reasons.lookup_per_cpu(_index(reason))
            else:
                values = [self._slow_reasons.lookup(_index(reason)) or b""]
            counts[reason] = sum(int.from_bytes(value, sys.byteorder) for value in values)
        return counts

    def write_slow_reasons(self, counts: Mapping[Reason, int]) -> None:
        """Publish the packet process's counters (totals, not differences)."""
        for reason, total in counts.items():
            self._slow_reasons.update(_index(reason), total.to_bytes(8, sys.byteorder))

    def close(self) -> None:
        """Drop the handle. What is attached stays attached."""
        self._flows.close()
        for pinned in (
            self._nexthops,
            self._egress,
            self._keys,
            self._reasons,
            self._slow_reasons,
            self._control,
        ):
            pinned.close()
        if self._peers:
            self._peers.close()


def _index(number: int) -> bytes:
    return int(number).to_bytes(4, sys.byteorder)
