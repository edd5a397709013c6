"""The pinned maps of an instance: made, adopted from an earlier run, or refused.

Adopted is only what means the same. Another layout or table size is migrated: new maps beside the
old ones, which go once the new program is attached everywhere (`settle`).
"""

import contextlib
import dataclasses
from pathlib import Path

from relayctl.datapath import maps, migrate
from relayctl.datapath.base import DatapathError
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.libbpf import is_bpffs, possible_cpus
from relayctl.datapath.spec import Spec

_ONLY = bytes(4)  # key of the only entry of an array of one


def adoption_faults(spec: Spec) -> list[str]:
    """Why a start would refuse what is pinned, found without changing anything."""
    try:
        check(spec)
    except DatapathError as error:
        return [str(error)]
    return []


def check(spec: Spec) -> None:
    """Raises `DatapathError` where `adopt` and `make` could not do their work; changes nothing."""
    require_bpffs(spec)
    if _is_adoptable(spec):
        return
    old = _older_pins(spec)
    if old is not None:
        _check_meaning(spec, old)
        _check_room(spec, old)
    _require_memory(spec)


def pinned_ports(pins: Path) -> dict[str, int]:
    """Interface name → egress port, as pinned nexthops have it; nothing before the first start."""
    for path in (pins, *pins.parent.glob(f"{pins.name}_*")):
        if (path / maps.META.name).exists():
            with Map.open(path / maps.META.name) as meta:
                content = maps.unpack_meta(meta.lookup(_ONLY) or b"")
            return {name: port for name, _, port, *_ in content.get("interfaces", [])}
    return {}


def abandon(pins: Path) -> None:
    """Undo a first build: fresh pins go, what they were to replace stays."""
    discard(pins)
    migrate.restore(pins)


def discard(pins: Path) -> None:
    """Remove the pinned maps and program of one version, and the instance's directory with the
    last of them. What is attached stays attached."""
    for path in pins.glob("*"):
        path.unlink()
    for directory in (pins, pins.parent):
        with contextlib.suppress(OSError):  # gone, or links or another version are in it
            directory.rmdir()


def settle(pins: Path) -> None:
    """The new program is attached everywhere: take over what the old one did last, and drop it."""
    old = migrate.predecessor(pins)
    if old is not None:
        migrate.settle(old, pins)
        discard(old)


def adopt(spec: Spec) -> bool:
    """Take over the maps of an earlier run, if there are some and they mean the same."""
    if not _is_adoptable(spec):
        return False
    _create_missing(spec)
    with Map.open(spec.pins / maps.META.name) as meta:
        meta.update(_ONLY, maps.pack_meta(maps.meta(spec)))
    return True


def _create_missing(spec: Spec) -> None:
    for shape in maps.shapes(spec.max_flows, spec.max_flows_v6):
        if not (spec.pins / shape.name).exists():
            with Map.create(shape) as fresh:
                fresh.pin(spec.pins / shape.name)


def _is_adoptable(spec: Spec) -> bool:
    """False: nothing is there, or flow tables of another size. Raises `DatapathError` where pinned
    flows would mean something else."""
    pins = spec.pins
    if not (pins / maps.META.name).exists():
        return False
    _check_meaning(spec, pins)
    wrong = []
    for shape in maps.shapes(spec.max_flows, spec.max_flows_v6):
        if not (pins / shape.name).exists():
            continue
        with Map.open(pins / shape.name) as pinned:
            if pinned.matches(shape):
                continue
            wrong.append(shape.name)
            found = (
                f"type {pinned.type} of {pinned.entries} entries, {pinned.key_size}-byte keys, "
                f"{pinned.value_size}-byte values"
            )
            resized = pinned.matches(dataclasses.replace(shape, entries=pinned.entries))
            if not resized or shape.name not in migrate.FLOW_MAPS:
                raise DatapathError(
                    f"{pins / shape.name} cannot be adopted: pinned {found}, wanted {shape}; "
                    f"{_drop(pins)}"
                )
    return not wrong


def _drop(pins: Path) -> str:
    return f"give the old value, or drop the pinned flows: relayctl unload, or rm -r {pins}"


def _check_meaning(spec: Spec, pins: Path) -> None:
    with Map.open(pins / maps.META.name) as meta:
        content = maps.unpack_meta(meta.lookup(_ONLY) or b"")
    if difference := maps.disagreement(content, maps.meta(spec), same_layout=pins == spec.pins):
        raise DatapathError(f"{pins} cannot be adopted: {difference}; {_drop(pins)}")


def _older_pins(spec: Spec) -> Path | None:
    """Where flows come from that cannot be adopted in place."""
    if (spec.pins / maps.META.name).exists():
        return spec.pins
    return migrate.predecessor(spec.pins)


def _check_room(spec: Spec, old: Path) -> None:
    live = migrate.live_flows(old)
    for name, key, room in (
        ("flows_v4", "max_flows", spec.max_flows),
        ("flows_v6", "max_flows_v6", spec.max_flows_v6),
    ):
        if live.get(name, 0) > room:
            raise DatapathError(f"{key} = {room}: {live[name]} flows are alive; choose more")


def make(spec: Spec) -> int:
    """Fresh maps, with the flows of what they replace; how many. `check` has to have passed."""
    pins = spec.pins
    old = _older_pins(spec)
    if old == pins:
        migrate.set_aside(pins)
        old = migrate.predecessor(pins)
    for leftover in pins.glob("*"):  # of a run that ended before it wrote `meta`
        leftover.unlink()
    _make_directory(pins)
    _create_missing(spec)
    copied = migrate.copy(old, pins) if old is not None else 0
    with Map.create(maps.META) as meta:
        meta.update(_ONLY, maps.pack_meta(maps.meta(spec)))
        meta.pin(pins / maps.META.name)
    return copied


def _make_directory(pins: Path) -> None:
    try:
        pins.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        mend = "run as root, or let this user write to the BPF file system"
        raise DatapathError(f"cannot make {pins}: {error.strerror}; {mend}") from error


def memory(spec: Spec) -> int:
    cpus = possible_cpus()
    return sum(
        shape.memory(cpus) for shape in (*maps.shapes(spec.max_flows, spec.max_flows_v6), maps.META)
    )


def _require_memory(spec: Spec) -> None:
    needed, free = memory(spec), _available()
    if needed > free:
        raise DatapathError(
            f"max_flows = {spec.max_flows}, max_flows_v6 = {spec.max_flows_v6}: the maps need "
            f"{needed / 1e6:.1f} MB of kernel memory, {free / 1e6:.1f} MB are free; lower them"
        )


def _available() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    raise DatapathError("/proc/meminfo has no MemAvailable; mount /proc")


def require_bpffs(spec: Spec) -> None:
    if not is_bpffs(Path(spec.bpffs)):
        raise DatapathError(
            f"{spec.bpffs} is no BPF file system: mount -t bpf bpf {spec.bpffs}, or set bpffs "
            "(`ip netns exec` hides the one that is there, `nsenter --net` does not)"
        )
