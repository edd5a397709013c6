"""An instance's pins as an operator reads them: maps, and the names behind their numbers."""

import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from relayctl.datapath import maps, xdp
from relayctl.datapath.base import Datapath
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.libbpf import BpfError, Link
from relayctl.datapath.spec import pin_directory


@dataclass(frozen=True)
class Pinned:
    """`vips`: public address by id; `ports`: interface by egress port; `attached`: interfaces."""

    datapath: Datapath
    vips: Mapping[int, str] = field(default_factory=dict)
    ports: Mapping[int, str] = field(default_factory=dict)
    attached: tuple[str, ...] = ()


def open_pinned(instance: str, bpffs: Path) -> Pinned:
    """Open for reading. Raises `DatapathError`."""
    datapath = xdp.open_readonly(instance, str(bpffs))
    pins = pin_directory(str(bpffs), instance)
    return Pinned(datapath, _vips(pins), _ports(pins), tuple(map(_interface, datapath.attached())))


def _vips(pins: Path) -> dict[int, str]:
    with Map.open(pins / maps.META.name) as meta:
        content = maps.unpack_meta(meta.lookup(bytes(4)) or b"")
    return {int(id): public for id, (public, _) in content.get("vips", {}).items()}


def _ports(pins: Path) -> dict[int, str]:
    with Map.open(pins / "egress") as egress:
        entries = [(_number(key), egress.lookup(key)) for key in map(_key, range(egress.entries))]
    return {port: _interface(_number(value)) for port, value in entries if value is not None}


def _key(number: int) -> bytes:
    return number.to_bytes(4, sys.byteorder)


def _number(packed: bytes) -> int:
    return int.from_bytes(packed, sys.byteorder)


def _interface(index: int) -> str:
    try:
        return socket.if_indextoname(index)
    except OSError:  # gone, or of another network namespace
        return f"interface {index}"


def program_ids(directory: Path) -> frozenset[int]:
    """XDP programs that pinned links of an instance hold. `directory` lies above the maps."""
    found = set()
    for path in directory.glob("link-*"):
        try:
            with Link.open(path) as link:
                found.add(link.program_id)
        except BpfError:  # not ours to read, or gone meanwhile
            continue
    return frozenset(found)
