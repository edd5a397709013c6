"""The counter at a far end of the rig: an XDP program that counts, times and drops."""

import struct
from dataclasses import dataclass

from relayctl.datapath.libbpf import DRIVER_MODE, Link
from tests.bench import bpf
from tests.bench.histogram import STEPS
from tests.bench.rig import Rig

_SEEN = struct.Struct("=QQQ")
_ONLY = bytes(4)


@dataclass(frozen=True)
class Watch:
    """Which datagrams count: offsets in the frame as it arrives."""

    protocol_at: int
    port_at: int
    port: int
    stamp_at: int


@dataclass(frozen=True)
class Seen:
    packets: int
    octets: int
    strangers: int

    def __sub__(self, other: "Seen") -> "Seen":
        return Seen(
            self.packets - other.packets,
            self.octets - other.octets,
            self.strangers - other.strangers,
        )


class Sink:
    """Compiled at once; `attach` and `detach` as often as you like."""

    def __init__(self, rig: Rig, interface: str, watch: Watch) -> None:
        defines = [
            f"PROTOCOL_AT={watch.protocol_at}",
            f"WATCH_AT={watch.port_at}",
            f"WATCH={watch.port}",
            f"STAMP_AT={watch.stamp_at}",
        ]
        self._compiled = bpf.Compiled(bpf.source("sink.c"), "sink", defines)
        self._node, self._ifindex = rig.node_of(interface), rig.ifindex(interface)
        self._link: Link | None = None

    def attach(self) -> None:
        program, ifindex = self._compiled.program, self._ifindex
        self._link = self._node.call(lambda: Link.attach_xdp(program, ifindex, DRIVER_MODE))

    def detach(self) -> None:
        if self._link is not None:
            self._link.close()  # the last hold on it
            self._link = None

    def seen(self) -> Seen:
        values = self._compiled.map("seen").lookup_per_cpu(_ONLY)
        return Seen(*(sum(column) for column in zip(*map(_SEEN.unpack, values), strict=True)))

    def delays(self) -> list[int]:
        """Probes so far, by step of the histogram."""
        delays = self._compiled.map("delays")
        counts = [0] * STEPS
        for step in range(STEPS):
            values = delays.lookup_per_cpu(step.to_bytes(4, "little"))
            counts[step] = sum(int.from_bytes(value, "little") for value in values)
        return counts

    def close(self) -> None:
        self.detach()
        self._compiled.close()
