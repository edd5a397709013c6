"""Compile the XDP program and make or adopt the maps it works on, in a process of its own.

    python -m relayctl.datapath.compile < spec.json

The compiler takes 130 MB, which go when this process ends; what it made stays pinned. It attaches
nothing. Exit 0 with a `Loaded` as JSON on stdout, or 1 with one error for people on stderr.
The only module that imports BCC.
"""

import contextlib
import dataclasses
import json
import os
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

from relayctl.datapath import maps
from relayctl.datapath.base import DatapathError
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.libbpf import Program, is_bpffs, possible_cpus
from relayctl.datapath.spec import Spec

ENTRY = b"ferryline_relay"  # name of the program in the kernel, at most 15 characters
SOURCE = Path(__file__).resolve().parents[2] / "bpf"
UAPI = Path("/usr/include/linux/ip.h")  # of linux-libc-dev

_ONLY = bytes(4)  # key of the only entry of an array of one


@dataclasses.dataclass(frozen=True, slots=True)
class Loaded:
    """What came of a compilation."""

    adopted: bool  # the maps of an earlier run, with their flows
    map_bytes: int  # kernel memory of all maps
    program_id: int
    instructions: int  # that the verifier walked through; 0 if the kernel does not tell
    seconds: float


def main() -> int:
    try:
        loaded = build(Spec.from_json(sys.stdin.read()))
    except DatapathError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    print(json.dumps(dataclasses.asdict(loaded)))  # noqa: T201
    return 0


def build(spec: Spec) -> Loaded:
    """Pin maps and program of `spec`. Raises `DatapathError` and then has changed no pin in use,
    and left no new one."""
    began = time.monotonic()
    _require_bpffs(spec)
    adopted = prepare_maps(spec)
    try:
        with compiled(spec) as program:
            fresh = spec.pins / "program_next"
            fresh.unlink(missing_ok=True)
            program.pin(fresh)
            fresh.rename(spec.pins / "program")
            return Loaded(
                adopted=adopted,
                map_bytes=_memory(spec),
                program_id=program.id,
                instructions=program.verified_instructions,
                seconds=round(time.monotonic() - began, 3),
            )
    except DatapathError:
        if not adopted:
            discard(spec.pins)
        raise


def discard(pins: Path) -> None:
    """Remove the pinned maps and program of one version, and the instance's directory with the
    last of them. What is attached stays attached."""
    for path in pins.glob("*"):
        path.unlink()
    for directory in (pins, pins.parent):
        with contextlib.suppress(OSError):  # gone, or links or another version are in it
            directory.rmdir()


def prepare_maps(spec: Spec) -> bool:
    """Make the pinned maps, or adopt those of an earlier run (True) if they mean the same."""
    wanted = maps.meta(spec)
    meta_path = spec.pins / maps.META.name
    adopted = meta_path.exists()
    if adopted:
        _check_adoptable(spec, wanted)
    else:
        _require_memory(spec)
        for leftover in spec.pins.glob("*"):  # of a run that ended before it wrote `meta`
            leftover.unlink()
    _make_directory(spec.pins)
    for shape in maps.shapes(spec.max_flows):
        if not (spec.pins / shape.name).exists():
            with Map.create(shape) as fresh:
                fresh.pin(spec.pins / shape.name)
    with Map.open(meta_path) if adopted else Map.create(maps.META) as meta:
        meta.update(_ONLY, maps.pack_meta(wanted))
        if not adopted:
            meta.pin(meta_path)
    return adopted


def _make_directory(pins: Path) -> None:
    try:
        pins.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        mend = "run as root, or let this user write to the BPF file system"
        raise DatapathError(f"cannot make {pins}: {error.strerror}; {mend}") from error


def _check_adoptable(spec: Spec, wanted: dict[str, object]) -> None:
    mend = f"give the old value, or drop the pinned flows: rm -r {spec.pins}"
    with Map.open(spec.pins / maps.META.name) as meta:
        content = maps.unpack_meta(meta.lookup(_ONLY) or b"") if meta.matches(maps.META) else {}
    if difference := maps.disagreement(content, wanted):
        raise DatapathError(f"{spec.pins} cannot be adopted: {difference}; {mend}")
    for shape in maps.shapes(spec.max_flows):
        path = spec.pins / shape.name
        if not path.exists():
            continue
        with Map.open(path) as pinned:
            if pinned.matches(shape):
                continue
            otherwise_equal = pinned.matches(dataclasses.replace(shape, entries=pinned.entries))
            if shape.name == "flows_v4" and otherwise_equal:
                raise DatapathError(
                    f"max_flows = {spec.max_flows}: {path} was made for {pinned.entries} and "
                    f"cannot be adopted; {mend}"
                )
            found = (
                f"type {pinned.type} of {pinned.entries} entries, {pinned.key_size}-byte keys, "
                f"{pinned.value_size}-byte values"
            )
            raise DatapathError(f"{path} cannot be adopted: pinned {found}, wanted {shape}; {mend}")


def _memory(spec: Spec) -> int:
    cpus = possible_cpus()
    return sum(shape.memory(cpus) for shape in (*maps.shapes(spec.max_flows), maps.META))


def _require_memory(spec: Spec) -> None:
    needed, free = _memory(spec), _available()
    sizes = f"the maps for max_flows = {spec.max_flows} need {needed / 1e6:.1f} MB"
    if needed > free:
        raise DatapathError(f"{sizes}, {free / 1e6:.1f} MB are free; lower max_flows")
    print(f"{sizes} of kernel memory", file=sys.stderr)  # noqa: T201


def _available() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    raise DatapathError("/proc/meminfo has no MemAvailable; mount /proc")


def _require_bpffs(spec: Spec) -> None:
    if not is_bpffs(Path(spec.bpffs)):
        raise DatapathError(
            f"{spec.bpffs} is no BPF file system: mount -t bpf bpf {spec.bpffs}, or set bpffs "
            "(`ip netns exec` hides the one that is there, `nsenter --net` does not)"
        )


@contextlib.contextmanager
def compiled(spec: Spec) -> Iterator[Program]:
    """The program of `spec`, verified and loaded; its maps have to be pinned. Closed at the end."""
    if not UAPI.exists():
        raise DatapathError(f"{UAPI} is missing: apt install linux-libc-dev")
    os.environ["BCC_KERNEL_SOURCE"] = str(SOURCE)  # our stand-in for kernel headers
    try:
        import bcc
    except ImportError as error:
        raise DatapathError(
            f"BCC is missing ({error}): apt install python3-bpfcc, and make the virtual "
            "environment with --system-site-packages"
        ) from error
    try:
        module = bcc.BPF(text=(SOURCE / "relay.c").read_bytes(), cflags=flags(spec.defines()))
        function = module.load_func(ENTRY, bcc.BPF.XDP)
    except Exception as error:  # BCC raises bare Exceptions; its reasons went to stderr
        raise DatapathError(f"the XDP program does not load: {error}") from error
    try:
        yield Program(function.fd)  # BCC owns the descriptor
    finally:
        module.cleanup()


def flags(defines: list[str]) -> list[str]:
    """The compiler's command line."""
    triplet = sysconfig.get_config_var("MULTIARCH") or ""
    return [
        "-Wall",
        "-fms-extensions",  # headers of kernel 6.19 and later use them
        f"-I{SOURCE}",  # BCC compiles from a virtual file: "" finds nothing beside it
        *("-idirafter", "/usr/include", "-idirafter", f"/usr/include/{triplet}"),
        *(f"-D{define}" for define in defines),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
