"""Hang the pinned program on interfaces by pinned BPF links, and take it off again.

The kernel lets nobody else replace or remove what a link holds. What was there before us is
foreign and stays: we refuse and name it. Never detach and attach: that loses packets.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from relayctl.datapath.base import DatapathError
from relayctl.datapath.libbpf import (
    DRIVER_MODE,
    SKB_MODE,
    Attached,
    BpfError,
    Link,
    Program,
    all_links,
    xdp_on,
)
from relayctl.datapath.spec import Mode

_FLAGS = {Mode.NATIVE: DRIVER_MODE, Mode.GENERIC: SKB_MODE}
_PREFIX = "link-"


def attach(directory: Path, name: str, ifindex: int, program: Program, mode: Mode) -> None:
    """Put `program` on an interface, or swap it in for our own older one.

    `name` is for messages, `directory` keeps the link's pin. Raises `DatapathError`: a foreign
    program is there, ours is there in another mode, or the kernel refuses.
    """
    path = directory / f"{_PREFIX}{ifindex}"
    on = xdp_on(ifindex)
    with _pinned(path) as link:
        if link and link.ifindex == ifindex:
            _update(path, link, name, program, mode)
            return
    path.unlink(missing_ok=True)  # of an interface that is gone: its number was used again
    if foreign := on.native or on.generic or on.hardware:
        raise DatapathError(_foreign(name, ifindex, foreign, on))
    try:
        link = Link.attach_xdp(program, ifindex, _FLAGS[mode])
    except BpfError as error:
        raise DatapathError(_refusal(name, ifindex, program, mode, error)) from error
    with link:
        link.pin(path)


def _update(path: Path, link: Link, name: str, program: Program, mode: Mode) -> None:
    found = mode_of(link.ifindex or 0)
    if found is not mode:
        raise DatapathError(
            f"{name}: our program is attached in {found} mode, wanted {mode}; "
            f"take it off first: rm {path}"
        )
    with Program.by_id(link.program_id) as present:
        if present.id != program.id:
            link.update(program, expected=present)


def mode_of(ifindex: int) -> Mode | None:
    """How the program on an interface is attached; None if there is none."""
    on = xdp_on(ifindex)
    if on.native:
        return Mode.NATIVE
    return Mode.GENERIC if on.generic else None


def attached(directory: Path) -> list[int]:
    """Interfaces that a pinned link of ours holds."""
    found = []
    for path in sorted(directory.glob(f"{_PREFIX}*")):
        with _pinned(path) as link:
            if link and link.ifindex:
                found.append(link.ifindex)
    return found


def detach(directory: Path, *, keep: frozenset[int] = frozenset()) -> None:
    """Take our program off every interface but those in `keep`, which may stay without a gap."""
    for path in directory.glob(f"{_PREFIX}*"):
        with _pinned(path) as link:
            if link and link.ifindex in keep:
                continue
            if link and link.ifindex:
                link.detach()
        path.unlink()


@contextlib.contextmanager
def _pinned(path: Path) -> Iterator[Link | None]:
    try:
        link = Link.open(path)
    except BpfError as error:
        if error.errno != errno.ENOENT:
            raise
        yield None
        return
    with link:
        yield link


def _foreign(name: str, ifindex: int, program_id: int, on: Attached) -> str:
    with Program.by_id(program_id) as program:
        called = program.name or "unnamed"
    what = f"{name} carries another XDP program: id {program_id}, {called!r}"
    for link in all_links():  # of every network namespace: interface numbers repeat
        if (link.ifindex, link.program_id) == (ifindex, program_id):
            return f"{what}, held by BPF link {link.id}; stop the program that attached it"
    # plain `xdp off` does nothing to a generic program where the driver knows native ones
    how = {on.generic: "xdpgeneric", on.hardware: "xdpoffload"}.get(program_id, "xdp")
    return f"{what}; if nobody needs it: ip link set dev {name} {how} off"


def _refusal(name: str, ifindex: int, program: Program, mode: Mode, error: BpfError) -> str:
    with ThreadPoolExecutor(1) as thread:  # pyroute2 refuses to run inside somebody's event loop
        text = thread.submit(_kernel_text, ifindex, program, mode).result()
    said = text or os.strerror(error.errno)
    message = f"{name}: the kernel refuses the program in {mode} mode: {said}"
    if mode is Mode.NATIVE:
        message += "; mend that, or set xdp_mode = 'generic' (several times slower)"
    return message


def _kernel_text(ifindex: int, program: Program, mode: Mode) -> str | None:
    """The driver's own words: the link call has no room for them, netlink has."""
    from pyroute2 import IPRoute  # takes half a second to load, and is needed only here
    from pyroute2.netlink.exceptions import NetlinkError

    flags = _FLAGS[mode] | 1  # XDP_FLAGS_UPDATE_IF_NOEXIST: never replace anything
    attributes = {"attrs": [("IFLA_XDP_FD", program.fd), ("IFLA_XDP_FLAGS", flags)]}
    with IPRoute(ext_ack=True) as netlink:
        try:
            netlink.link("set", index=ifindex, xdp=attributes)
        except NetlinkError as error:
            return str(error.args[1]) if len(error.args) > 1 and error.args[1] else None
        off = {"attrs": [("IFLA_XDP_FD", -1), ("IFLA_XDP_FLAGS", _FLAGS[mode])]}
        netlink.link("set", index=ifindex, xdp=off)  # it went after all
    return None
