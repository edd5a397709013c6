"""Which kernel modules a guest loads, and in which order. Pure.

A Debian package has no `modules.dep` (that is made when it is installed), but each module names
the ones it needs. One that the package does not have is built into the kernel.
"""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

WANTED = (
    *("virtio_pci", "virtiofs", "overlay"),  # the root file system
    *("veth", "8021q", "dummy"),  # interfaces of the tests
)

_DEPENDS = b"\0depends="  # in section .modinfo: strings that end with a zero


def name_of(path: str) -> str | None:
    """Name of the module in a file of that path, or None if it is none: `a/8021q.ko.xz`."""
    stem, dot, _ = PurePosixPath(path).name.partition(".ko")
    return stem.replace("-", "_") if dot else None


def needs(module: bytes) -> list[str]:
    """Names of the modules that an unpacked module needs loaded before it."""
    _, found, rest = module.partition(_DEPENDS)
    if not found:
        return []
    return [name.replace("-", "_") for name in rest.partition(b"\0")[0].decode().split(",") if name]


def loading_order(wanted: Iterable[str], modules: Mapping[str, bytes]) -> list[str]:
    """Those of `wanted` that are modules, and what they need, each after what it needs."""
    ordered: dict[str, None] = {}

    def add(name: str) -> None:
        if name in modules and name not in ordered:
            for needed in needs(modules[name]):
                add(needed)
            ordered[name] = None

    for name in wanted:
        add(name)
    return list(ordered)
