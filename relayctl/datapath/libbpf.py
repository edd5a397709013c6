"""The kernel's BPF objects through libbpf: programs, links, pins. Maps are in `bpf_map`.

A thin wrapper by ctypes: no policy, no logging. Every failure raises `BpfError`.
"""

import ctypes
import errno
import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from relayctl.datapath.base import DatapathError

XDP_DROP, XDP_PASS, XDP_REDIRECT = 1, 2, 4  # enum xdp_action
SKB_MODE, DRIVER_MODE = 1 << 1, 1 << 2  # XDP_FLAGS_SKB_MODE, XDP_FLAGS_DRV_MODE

_BPF_XDP = 37  # enum bpf_attach_type
_LINK_TYPE_XDP = 6  # enum bpf_link_type
_REPLACE = 1 << 2  # BPF_F_REPLACE
_BPFFS_MAGIC = 0xCAFE4A11

_MENDS = {
    errno.EPERM: "run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON",
    errno.EACCES: "run as root, or as the user whose pins these are",
    errno.ENOMEM: "the kernel has no memory for it",
}


class BpfError(DatapathError):
    """A BPF call failed. `errno` is the kernel's."""

    def __init__(self, action: str, number: int) -> None:
        mend = f"; {_MENDS[number]}" if number in _MENDS else ""
        super().__init__(f"cannot {action}: {os.strerror(number)} (errno {number}){mend}")
        self.errno = number


@functools.cache
def library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libbpf.so.1", use_errno=True)
    except OSError as error:
        raise DatapathError(f"libbpf.so.1 does not load ({error}): apt install libbpf1") from error


def call(action: str, function: str, *arguments: object) -> int:
    """Call libbpf. `action` says what was tried. Raises `BpfError`."""
    result: int = getattr(library(), function)(*arguments)
    if result < 0:
        raise BpfError(action, -result)
    return result


def possible_cpus() -> int:
    """How many values a per-CPU map has in each entry."""
    return call("count the CPUs", "libbpf_num_possible_cpus")


def is_bpffs(path: Path) -> bool:
    """Is `path` on a mounted BPF file system?"""
    buffer = ctypes.create_string_buffer(256)  # struct statfs, whose first field is a long f_type
    if ctypes.CDLL(None).statfs(os.fsencode(path), buffer) < 0:
        return False
    return ctypes.c_long.from_buffer(buffer).value == _BPFFS_MAGIC


class Handle:
    """A file descriptor of a BPF object; closing it leaves what is pinned or attached."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def open(cls, path: Path) -> Self:
        return cls(call(f"open {path}", "bpf_obj_get", os.fsencode(path)))

    def pin(self, path: Path) -> None:
        call(f"pin {path}", "bpf_obj_pin", self.fd, os.fsencode(path))

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def read_info(self, info: ctypes.Structure) -> None:
        """Fill in a struct bpf_*_info."""
        size = ctypes.c_uint32(ctypes.sizeof(info))
        arguments = ctypes.byref(info), ctypes.byref(size)
        call("read the description of a BPF object", "bpf_obj_get_info_by_fd", self.fd, *arguments)


class _ProgramInfo(ctypes.Structure):
    """struct bpf_prog_info, up to what is read here."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("id", ctypes.c_uint32),
        ("tag", ctypes.c_uint8 * 8),
        ("unread", ctypes.c_uint8 * 48),
        ("name", ctypes.c_char * 16),
        ("unread2", ctypes.c_uint8 * 136),
        ("verified_instructions", ctypes.c_uint32),
        ("unread3", ctypes.c_uint32 * 3),
    )


class TestRunOptions(ctypes.Structure):
    """struct bpf_test_run_opts"""

    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("data_in", ctypes.c_char_p),
        ("data_out", ctypes.c_void_p),
        ("data_size_in", ctypes.c_uint32),
        ("data_size_out", ctypes.c_uint32),
        ("ctx_in", ctypes.c_void_p),
        ("ctx_out", ctypes.c_void_p),
        ("ctx_size_in", ctypes.c_uint32),
        ("ctx_size_out", ctypes.c_uint32),
        ("retval", ctypes.c_uint32),
        ("repeat", ctypes.c_int),
        ("duration", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cpu", ctypes.c_uint32),
        ("batch_size", ctypes.c_uint32),
    )


@dataclass(frozen=True, slots=True)
class TestRun:
    """What became of a packet: verdict of the last run, its bytes, mean duration in ns."""

    verdict: int
    data: bytes
    duration: int


class Program(Handle):
    @classmethod
    def by_id(cls, id: int) -> Self:
        return cls(call(f"open BPF program {id}", "bpf_prog_get_fd_by_id", ctypes.c_uint32(id)))

    @property
    def id(self) -> int:
        return int(self._info().id)

    @property
    def name(self) -> str:
        return bytes(self._info().name).decode(errors="replace")

    @property
    def verified_instructions(self) -> int:
        """How many instructions the verifier walked through; 0 before kernel 5.16."""
        return int(self._info().verified_instructions)

    def _info(self) -> _ProgramInfo:
        info = _ProgramInfo()
        self.read_info(info)
        return info

    def test_run(
        self, packet: bytes, *, ifindex: int, metadata: int = 0, repeat: int = 1
    ) -> TestRun:
        """Run an XDP program on a packet as if it came in on `ifindex`, which has to carry one
        itself; 0 is the loopback.

        The first `metadata` bytes of `packet` are metadata in front of the frame: they take head
        room away. With `repeat`, later runs see the packet as the earlier ones left it.
        """
        out = ctypes.create_string_buffer(len(packet) + 256)
        context = (ctypes.c_uint32 * 6)(metadata, len(packet), 0, ifindex, 0, 0)  # struct xdp_md
        options = TestRunOptions(
            sz=ctypes.sizeof(TestRunOptions),
            data_in=packet,
            data_out=ctypes.addressof(out),
            data_size_in=len(packet),
            data_size_out=len(out),
            ctx_in=ctypes.addressof(context),
            ctx_size_in=ctypes.sizeof(context),
            repeat=repeat,
        )
        call("test-run the program", "bpf_prog_test_run_opts", self.fd, ctypes.byref(options))
        return TestRun(options.retval, out.raw[: options.data_size_out], options.duration)


class _LinkInfo(ctypes.Structure):
    """struct bpf_link_info of an XDP link."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("id", ctypes.c_uint32),
        ("program_id", ctypes.c_uint32),
        ("hole", ctypes.c_uint32),
        ("ifindex", ctypes.c_uint32),
        ("unread", ctypes.c_uint8 * 28),
    )


class _LinkCreateOptions(ctypes.Structure):
    """struct bpf_link_create_opts, up to the flags"""

    _fields_ = (("sz", ctypes.c_size_t), ("flags", ctypes.c_uint32), ("hole", ctypes.c_uint32))


class _LinkUpdateOptions(ctypes.Structure):
    """struct bpf_link_update_opts"""

    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("flags", ctypes.c_uint32),
        ("old_program", ctypes.c_uint32),
    )


class Link(Handle):
    """A program's hold on an interface; it ends with the last pin and descriptor."""

    @classmethod
    def attach_xdp(cls, program: Program, ifindex: int, flags: int) -> Self:
        """Raises `BpfError` with EBUSY if another program is there."""
        options = _LinkCreateOptions(sz=ctypes.sizeof(_LinkCreateOptions), flags=flags)
        action = f"attach to ifindex {ifindex}"
        arguments = program.fd, ifindex, _BPF_XDP, ctypes.byref(options)
        return cls(call(action, "bpf_link_create", *arguments))

    @property
    def id(self) -> int:
        return int(self._info().id)

    @property
    def program_id(self) -> int:
        return int(self._info().program_id)

    @property
    def ifindex(self) -> int | None:
        """Interface of an XDP link; 0 if it is gone; None if this is another type of link."""
        info = self._info()
        return int(info.ifindex) if info.type == _LINK_TYPE_XDP else None

    def update(self, program: Program, *, expected: Program) -> None:
        """Swap programs in one step. Raises `BpfError` (EPERM) if another than `expected` is on."""
        options = _LinkUpdateOptions(
            sz=ctypes.sizeof(_LinkUpdateOptions), flags=_REPLACE, old_program=expected.fd
        )
        action = f"update BPF link {self.id}"
        call(action, "bpf_link_update", self.fd, program.fd, ctypes.byref(options))

    def detach(self) -> None:
        call(f"detach BPF link {self.id}", "bpf_link_detach", self.fd)

    def _info(self) -> _LinkInfo:
        info = _LinkInfo()
        self.read_info(info)
        return info


def all_links() -> Iterator[Link]:
    """Every BPF link of the system; each is closed when the next one is asked for."""
    id = ctypes.c_uint32(0)
    while _found("list BPF links", "bpf_link_get_next_id", id, ctypes.byref(id)) is not None:
        fd = _found(f"open BPF link {id.value}", "bpf_link_get_fd_by_id", id)
        if fd is None:  # it went meanwhile
            continue
        with Link(fd) as link:
            yield link


def _found(action: str, function: str, *arguments: object) -> int | None:
    """`call`, or None for what is not there."""
    try:
        return call(action, function, *arguments)
    except BpfError as error:
        if error.errno != errno.ENOENT:
            raise
        return None


class _QueryOptions(ctypes.Structure):
    """struct bpf_xdp_query_opts"""

    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("program_id", ctypes.c_uint32),
        ("driver_program_id", ctypes.c_uint32),
        ("hardware_program_id", ctypes.c_uint32),
        ("generic_program_id", ctypes.c_uint32),
        ("attach_mode", ctypes.c_uint8),
        ("hole", ctypes.c_uint8 * 7),
    )


@dataclass(frozen=True, slots=True)
class Attached:
    """XDP program ids on an interface, by mode; 0 = none."""

    native: int
    generic: int
    hardware: int


def xdp_on(ifindex: int) -> Attached:
    """Which programs an interface carries. Raises `BpfError`."""
    options = _QueryOptions(sz=ctypes.sizeof(_QueryOptions))
    action = f"ask which XDP program is on ifindex {ifindex}"
    call(action, "bpf_xdp_query", ifindex, 0, ctypes.byref(options))
    return Attached(
        options.driver_program_id, options.generic_program_id, options.hardware_program_id
    )
