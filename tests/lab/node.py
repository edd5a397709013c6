"""A place where programs run and packets come and go: one namespace, or the host itself."""

import array
import contextlib
import fcntl
import socket as sockets
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pyroute2 import IPRoute

from tests.lab import namespace
from tests.lab.program import Program, Programs

T = TypeVar("T")

REPOSITORY = Path(__file__).parents[2]

_SIOCETHTOOL = 0x8946
_ETHTOOL = {"rx": 0x15, "tx": 0x17, "gro": 0x2C}  # ETHTOOL_SRXCSUM, _STXCSUM, _SGRO


class Node:
    """`namespace_name` None is the host: no root needed, nothing is entered."""

    def __init__(self, namespace_name: str | None, programs: Programs) -> None:
        self.namespace = namespace_name
        self.programs = programs

    def call(self, function: Callable[[], T]) -> T:
        """What `function` returns or raises, run inside."""
        return function() if self.namespace is None else namespace.call(self.namespace, function)

    def socket(self, family: int, kind: int, protocol: int = 0) -> sockets.socket:
        """A socket that belongs to this node, wherever it is used."""
        return self.call(lambda: sockets.socket(family, kind, protocol))

    def udp(self, host: str, port: int = 0, timeout_s: float = 2.0) -> sockets.socket:
        """A bound UDP socket with a timeout."""
        sock = self.socket(sockets.AF_INET, sockets.SOCK_DGRAM)
        sock.bind((host, port))
        sock.settimeout(timeout_s)
        return sock

    def popen(
        self,
        name: str,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        piped: bool = False,
    ) -> Program:
        """Start a program inside; its output goes to `<name>.log`. See `Programs.start`."""
        return self.programs.start(
            name, self._inside(argv), environ=environ, pass_fds=pass_fds, piped=piped
        )

    def python(self, name: str, *arguments: str, piped: bool = False) -> Program:
        """`popen` of `python -m …` with this interpreter."""
        return self.popen(name, [sys.executable, "-m", *arguments], piped=piped)

    def run(
        self, argv: Sequence[str], *, check: bool = True, timeout_s: float = 30.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end and keep its output as text."""
        return subprocess.run(
            self._inside(argv), check=check, timeout=timeout_s, text=True, capture_output=True
        )

    @contextlib.contextmanager
    def capture(self, interface: str) -> Iterator[sockets.socket]:
        """A raw socket that sees every frame of `interface`, both ways."""
        sock = self.socket(sockets.AF_PACKET, sockets.SOCK_RAW, sockets.htons(3))  # ETH_P_ALL
        with sock:
            sock.bind((interface, 0))
            yield sock

    def netlink(self, work: Callable[[Any], T]) -> T:
        """What `work` returns for a pyroute2 `IPRoute` of this node."""

        def inside() -> T:
            with IPRoute() as route:
                return work(route)

        return self.call(inside)

    def set_link(self, interface: str, up: bool) -> None:
        """Pull or plug one cable."""
        self.netlink(lambda ip: _set_link(ip, interface, "up" if up else "down"))

    def sysctl(self, settings: Mapping[str, str]) -> None:
        """Write /proc/sys; a key that this kernel lacks is left out."""
        self.call(lambda: _write_sysctls(settings))

    def offloads(self, interface: str, *, gro: bool) -> None:
        """Checksum offload off, GRO as told.

        A frame that a veth passes on with its checksum still to be filled in is a bad frame once
        it was redirected. And the far end of a veth takes redirected frames only if it has GRO or
        an XDP program.
        """
        self.call(lambda: _set_offloads(interface, {"rx": False, "tx": False, "gro": gro}))

    def _inside(self, argv: Sequence[str]) -> list[str]:
        if self.namespace is None:
            return list(argv)
        return ["nsenter", f"--net={namespace.path(self.namespace)}", "--", *argv]


def _set_link(ip: Any, interface: str, state: str) -> None:
    ip.link("set", index=ip.link_lookup(ifname=interface)[0], state=state)


def _write_sysctls(settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        with contextlib.suppress(FileNotFoundError):
            Path("/proc/sys", *key.split(".")).write_text(value)


def _set_offloads(interface: str, wanted: Mapping[str, bool]) -> None:
    with sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM) as sock:
        for feature, on in wanted.items():
            value = array.array("I", [_ETHTOOL[feature], on])  # struct ethtool_value
            request = struct.pack("16sP16x", interface.encode(), value.buffer_info()[0])
            fcntl.ioctl(sock, _SIOCETHTOOL, request)
