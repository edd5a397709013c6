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

from relayctl.datapath import pins
from relayctl.datapath.base import DatapathError
from relayctl.datapath.libbpf import Program
from relayctl.datapath.spec import Spec

ENTRY = b"ferryline_relay"  # name of the program in the kernel, at most 15 characters
SOURCE = Path(__file__).resolve().parents[2] / "bpf"
UAPI = Path("/usr/include/linux/ip.h")  # of linux-libc-dev


@dataclasses.dataclass(frozen=True, slots=True)
class Loaded:
    """What came of a compilation."""

    adopted: bool  # the maps of an earlier run, with their flows
    migrated: int  # flows copied from the maps of another layout or size
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
    pins.check(spec)
    adopted = pins.adopt(spec)
    try:
        migrated = 0 if adopted else pins.make(spec)
        with compiled(spec) as program:
            fresh = spec.pins / "program_next"
            fresh.unlink(missing_ok=True)
            program.pin(fresh)
            fresh.rename(spec.pins / "program")
            return Loaded(
                adopted=adopted,
                migrated=migrated,
                map_bytes=pins.memory(spec),
                program_id=program.id,
                instructions=program.verified_instructions,
                seconds=round(time.monotonic() - began, 3),
            )
    except DatapathError:
        if not adopted:
            pins.abandon(spec.pins)
        raise


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
        "-fno-strict-aliasing",  # headers are read and written in larger units than their fields
        "-fms-extensions",  # headers of kernel 6.19 and later use them
        f"-I{SOURCE}",  # BCC compiles from a virtual file: "" finds nothing beside it
        *("-idirafter", "/usr/include", "-idirafter", f"/usr/include/{triplet}"),
        *(f"-D{define}" for define in defines),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
