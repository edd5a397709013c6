"""The limit: an XDP program of a few lines that writes MACs and redirects."""

import sys
from collections.abc import Sequence
from functools import partial

from relayctl.datapath.libbpf import DRIVER_MODE, Link
from tests.bench import bpf
from tests.bench.rig import Rig
from tests.bench.subjects import legs
from tests.bench.subjects.base import Leg
from tests.bench.wire import MACS

_WAYS = {"outer0": ("inner0", "sink0"), "inner0": ("outer0", "gen0")}


class Bare:
    name = "bare redirect"

    def __init__(self, rig: Rig, ways: Sequence[Leg]) -> None:
        """Carries the same frames as another subject does on `ways`."""
        self._rig = rig
        self.legs = tuple(legs.untouched(leg) for leg in ways)
        self._programs: dict[str, bpf.Compiled] = {}
        self._links: list[Link] = []

    def pids(self) -> list[int]:
        return []

    def start(self) -> None:
        for entry, (exit, far) in _WAYS.items():
            defines = [f"TO_MAC={_array(MACS[far])}", f"FROM_MAC={_array(MACS[exit])}"]
            compiled = bpf.Compiled(bpf.source("bare.c"), "bare", defines)
            port = self._rig.ifindex(exit).to_bytes(4, sys.byteorder)
            self._rig.relay.call(partial(compiled.map("wires").update, bytes(4), port))
            self._programs[entry] = compiled

    def carry(self, flows: int) -> None:
        for entry, compiled in self._programs.items():
            index = self._rig.ifindex(entry)
            attach = partial(Link.attach_xdp, compiled.program, index, DRIVER_MODE)
            self._links.append(self._rig.relay.call(attach))

    def keep_alive(self, flows: int) -> None: ...

    def rest(self) -> None:
        while self._links:
            self._links.pop().close()

    def stop(self) -> None:
        self.rest()
        while self._programs:
            self._programs.popitem()[1].close()


def _array(mac: bytes) -> str:
    return "{" + ",".join(map(hex, mac)) + "}"
