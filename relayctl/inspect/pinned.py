"""An instance's pins as an operator reads them: maps, and the names behind their numbers.

Names come from the pinned `meta`, never from this process's network namespace, whose interface
numbers may mean others.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relayctl.datapath import maps, xdp
from relayctl.datapath.base import ROUTE_KEY, ROUTE_KEYS, Datapath, DatapathError
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.libbpf import BpfError, Link, Program, is_bpffs, possible_cpus
from relayctl.datapath.spec import pin_directory
from relayctl.inspect.records import Record


@dataclass(frozen=True)
class Own:
    """XDP programs that pinned links of an instance hold. `unknown`: why there may be more."""

    programs: frozenset[int] = frozenset()
    unknown: str = ""


@dataclass(frozen=True)
class Pinned:
    """What an instance pinned. `attached` are the links that hang on a carrier, by ifindex."""

    datapath: Datapath
    batches: Callable[[], Iterable[tuple[bytes, bytes]]]
    meta: Mapping[str, Any] = field(default_factory=dict)
    attached: frozenset[int] = frozenset()
    capacity: Mapping[str, int] = field(default_factory=dict)  # by family
    keys: tuple[int, ...] = ()  # ids that the token gate accepts
    program: int | None = None  # id
    instructions: int | None = None  # that the verifier walked through

    @property
    def name(self) -> str:
        """Of the datapath: where the program hangs, seen from any network namespace."""
        return f"xdp-{self.meta.get('mode', 'native')}" if self.attached else "xdp-detached"

    @property
    def vips(self) -> dict[int, str]:
        """Public address by id."""
        return {int(id): public for id, (public, _) in self.meta.get("vips", {}).items()}

    @property
    def ports(self) -> dict[int, str]:
        """Interface by egress port."""
        return {port: name for name, _, port, *_ in self.meta.get("interfaces", ())}

    @property
    def memory(self) -> int:
        """Bytes of kernel memory that the maps take."""
        shapes = maps.shapes(self.capacity.get("v4", 1), self.capacity.get("v6", 1))
        return sum(shape.memory(possible_cpus()) for shape in (*shapes, maps.META))

    def interfaces(self) -> list[Record]:
        """`mode` is None where the program is off."""
        return [
            {
                "name": name,
                "role": role,
                "port": port,
                "tags": [tag for tag in tags if tag],
                "mode": self.meta.get("mode") if carrier in self.attached else None,
            }
            for name, _, port, role, carrier, tags in self.meta.get("interfaces", ())
        ]


def open_pinned(instance: str, bpffs: Path) -> Pinned:
    """Open for reading. Raises `DatapathError`."""
    datapath = xdp.open_readonly(instance, str(bpffs))
    pins = pin_directory(str(bpffs), instance)
    program, instructions = _program(pins)
    return Pinned(
        datapath,
        datapath.flows.batches,
        datapath.meta,
        frozenset(datapath.attached()),
        {family: _entries(pins / f"flows_{family}") for family in ("v4", "v6")},
        _keys(pins),
        program,
        datapath.meta.get("instructions", instructions),
    )


def _entries(path: Path) -> int:
    with Map.open(path) as pinned:
        return pinned.entries


def _keys(pins: Path) -> tuple[int, ...]:
    """Ids only: what else stands in the map is secret."""
    with Map.open(pins / "keys") as pinned:
        slots = [pinned.lookup(id.to_bytes(4, sys.byteorder)) for id in range(ROUTE_KEYS)]
    return tuple(id for id, slot in enumerate(slots) if slot and ROUTE_KEY.unpack(slot)[2])


def _program(pins: Path) -> tuple[int | None, int | None]:
    try:
        with Program.open(pins / "program") as program:
            return program.id, program.verified_instructions or None
    except DatapathError:  # removed by hand
        return None, None


def own_programs(bpffs: Path, instance: str) -> Own:
    """Programs of ours, as far as this process may see."""
    if not is_bpffs(bpffs):
        return Own(unknown=f"no BPF file system is visible at {bpffs}")
    found, unknown = set(), ""
    try:
        paths = list(pin_directory(str(bpffs), instance).parent.iterdir())
    except FileNotFoundError:
        paths = []
    except OSError as error:
        return Own(unknown=f"{error.filename} cannot be read: {error.strerror}")
    for path in paths:
        if not path.name.startswith("link-"):
            continue
        try:
            with Link.open(path) as link:
                found.add(link.program_id)
        except BpfError as error:
            unknown, *_ = str(error).partition(";")
    return Own(frozenset(found), unknown)
