"""Network namespaces: make, remove, and run a function inside one.

A function runs in a thread of its own that enters the namespace and ends with it, so the caller's
process never moves. Mounts stay those of the host: pins under /sys/fs/bpf remain visible, which
`ip netns exec` would hide behind a fresh /sys.
"""

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_RUN = Path("/run/netns")  # where iproute2 looks, so that `ip -n <name>` works too
_CLONE_NEWNET = 0x40000000
_MS_BIND, _MS_REC, _MS_SHARED = 0x1000, 0x4000, 0x100000
_MNT_DETACH = 2
_LIBC = ctypes.CDLL(None, use_errno=True)


def path(name: str) -> Path:
    return _RUN / name


def exists(name: str) -> bool:
    return path(name).exists()


def create(name: str) -> None:
    """Make the namespace `name`. Raises `FileExistsError`, `PermissionError`, `OSError`."""
    _share_run_directory()
    path(name).touch(exist_ok=False)
    try:
        _in_thread(lambda: _unshare_and_bind(name))
    except BaseException:
        path(name).unlink()
        raise


def remove(name: str) -> None:
    """Drop the name; the kernel frees the rest when the last process inside has ended."""
    _LIBC.umount2(bytes(path(name)), _MNT_DETACH)
    path(name).unlink(missing_ok=True)


def call(name: str, function: Callable[[], T]) -> T:
    """What `function` returns or raises when it runs inside the namespace `name`."""

    def inside() -> T:
        _enter(name)
        return function()

    return _in_thread(inside)


def unavailable() -> str | None:
    """Why this process can make no namespaces, or None if it can."""
    if os.geteuid() != 0:
        return f"network namespaces need root, this is uid {os.geteuid()}"
    try:
        _in_thread(lambda: _check(_LIBC.unshare(_CLONE_NEWNET), "unshare"))
    except OSError as error:
        return f"the kernel refuses network namespaces: {error.strerror}"
    return None


def _in_thread(function: Callable[[], T]) -> T:
    results: list[T] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(function())
        except BaseException as error:  # handed to the caller, whatever it is
            errors.append(error)

    thread = threading.Thread(target=body, name="namespace")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _share_run_directory() -> None:
    """As iproute2 does: names have to reach other mount namespaces and leave them again."""
    _RUN.mkdir(exist_ok=True)
    shared = _MS_SHARED | _MS_REC
    if _LIBC.mount(b"", bytes(_RUN), b"none", shared, None):
        bind = _MS_BIND | _MS_REC
        _check(_LIBC.mount(bytes(_RUN), bytes(_RUN), b"none", bind, None), str(_RUN))
        _check(_LIBC.mount(b"", bytes(_RUN), b"none", shared, None), str(_RUN))


def _unshare_and_bind(name: str) -> None:
    _check(_LIBC.unshare(_CLONE_NEWNET), "unshare")
    own = f"/proc/self/task/{threading.get_native_id()}/ns/net".encode()
    _check(_LIBC.mount(own, bytes(path(name)), b"none", _MS_BIND, None), name)


def _enter(name: str) -> None:
    descriptor = os.open(path(name), os.O_RDONLY | os.O_CLOEXEC)
    with contextlib.closing(os.fdopen(descriptor)):
        _check(_LIBC.setns(descriptor, _CLONE_NEWNET), name)


def _check(status: int, what: str) -> None:
    if status:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
