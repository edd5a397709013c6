"""Write an initramfs: a "newc" cpio archive, uncompressed (kernel: driver-api/early-userspace).

Pure. The kernel unpacks it into its first root, so names are relative and directories come before
what is in them.
"""

import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

_MAGIC = b"070701"
_TRAILER = "TRAILER!!!"  # a name that means the end


@dataclass(frozen=True, slots=True)
class File:
    """A regular file of root's; `name` without a leading slash."""

    name: str
    content: bytes
    mode: int = 0o644


def archive(files: Iterable[File], directories: Iterable[str] = ()) -> bytes:
    """Bytes of an archive with `directories`, `files` and the directories that those are in.

    Raises `ValueError` for a name that is absolute, empty, repeated or has `..` in it.
    """
    files = sorted(files, key=lambda file: file.name)
    names = [*directories, *(file.name for file in files)]
    for name in names:
        _check(name)
    if len({*names}) != len(names):
        raise ValueError(f"a name occurs twice in {', '.join(names)}")
    members = [
        *((name, stat.S_IFDIR | 0o755, b"") for name in _with_parents(directories, files)),
        *((file.name, stat.S_IFREG | file.mode, file.content) for file in files),
        (_TRAILER, 0, b""),
    ]
    return b"".join(_member(inode, *member) for inode, member in enumerate(members, 1))


def _check(name: str) -> None:
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts or name == _TRAILER:
        raise ValueError(f"{name!r}: want a relative path without '..'")


def _with_parents(directories: Iterable[str], files: Iterable[File]) -> Iterator[str]:
    """Shortest first, so that each comes after the one that it is in."""
    wanted = {PurePosixPath(name) for name in directories}
    for path in [*wanted, *(PurePosixPath(file.name) for file in files)]:
        wanted.update(path.parents)
    wanted.discard(PurePosixPath("."))
    yield from sorted(map(str, wanted), key=lambda name: (name.count("/"), name))


def _member(inode: int, name: str, mode: int, content: bytes) -> bytes:
    encoded = name.encode() + b"\0"
    links, user, group, time, device = 1, 0, 0, 0, 0
    numbers = (
        *(inode, mode, user, group, links, time, len(content)),
        *(device, device, device, device, len(encoded), 0),  # the last is an unused checksum
    )
    header = _MAGIC + b"".join(b"%08X" % number for number in numbers)
    return _padded(header + encoded) + _padded(content)


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % 4)
