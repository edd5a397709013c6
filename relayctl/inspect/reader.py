"""Looks at a relay from outside: asks its daemon, or reads its pinned maps when there is none.

Reads only, except `delete`, which needs the daemon. Records have the shape of `records` whoever
answers.
"""

import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import httpx

from relayctl import flow
from relayctl.config import BPFFS, RUN_DIR, RelayConfig
from relayctl.datapath.base import DatapathError
from relayctl.datapath.spec import pin_directory
from relayctl.inspect.census import Census
from relayctl.inspect.daemon_reader import DaemonReader
from relayctl.inspect.pin_reader import PinReader
from relayctl.inspect.pinned import Pinned, open_pinned
from relayctl.inspect.records import ReadError, Record
from relayctl.wire.address import Address

TIMEOUT_S = 30.0  # a full table is some 100 MB of JSON
ALIVE_S = 2.0  # patience with a daemon whose queue is full
BASE = "http://relay"  # the host has no meaning on a unix socket


@dataclass(frozen=True)
class Place:
    """Where one relay keeps its pins, its socket and its lock."""

    instance: str
    bpffs: Path
    socket: Path
    lock: Path

    @property
    def pins(self) -> Path:
        return pin_directory(str(self.bpffs), self.instance).parent

    @classmethod
    def of(cls, config: RelayConfig) -> "Place":
        return cls(config.instance, config.bpffs, config.socket_path, config.lock_path)

    @classmethod
    def named(cls, instance: str) -> "Place":
        """An instance that uses the default directories."""
        return cls(
            instance,
            BPFFS,
            RUN_DIR / f"{instance}.sock",
            RUN_DIR / f"{instance}.lock",
        )

    def at_socket(self, socket: Path) -> "Place":
        return replace(self, socket=socket)


OpenPins = Callable[[str, Path], Pinned]


class Reader(Protocol):
    """A relay as an operator sees it."""

    source: str  # "daemon" or "pins"

    def status(self) -> Record: ...

    def flows(self) -> Iterator[Record]: ...

    def census(self) -> Census:
        """Flows counted. Reads the whole table."""
        ...

    def flow(self, client: Address, vip: str | None) -> list[Record]:
        """The flows of one client: one for each VIP it talks to, or that of `vip` only."""
        ...

    def reasons(self) -> list[Record]: ...

    def nexthops(self) -> list[Record]: ...

    def delete(self, client: Address, vip: str | None) -> bool:
        """End a flow; False when there was none. Raises `ReadError` without a daemon."""
        ...

    def drain(self, on: bool) -> None:
        """Begin or end a drain. Raises `ReadError` without a daemon."""
        ...

    def close(self) -> None: ...


def find(place: Place, open_pins: OpenPins = open_pinned) -> Reader:
    """The daemon's answer if it runs, else what its maps hold. Raises `ReadError`."""
    refused = _refusal(place.socket)
    if refused is None:
        transport = httpx.HTTPTransport(uds=str(place.socket))
        return DaemonReader(httpx.Client(transport=transport, base_url=BASE, timeout=TIMEOUT_S))
    if isinstance(refused, PermissionError):
        raise ReadError(f"{place.socket}: {refused.strerror}; run it again with sudo")
    if not place.pins.is_dir():
        raise ReadError(
            f"{place.instance}: no daemon answers at {place.socket} ({refused.strerror}) and "
            f"nothing is pinned below {place.pins} (`ip netns exec` would hide it, `nsenter --net` "
            "would not); start it with `relayctl serve`, or name "
            "another with --config or --instance"
        )
    try:
        return PinReader(place.instance, open_pins(place.instance, place.bpffs), now)
    except DatapathError as error:
        raise ReadError(f"{place.instance}: {error}") from None


def _refusal(path: Path) -> OSError | None:
    """Why nobody takes a connection at `path`; None if somebody does."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(ALIVE_S)
        try:
            probe.connect(str(path))
        except OSError as error:
            return error
    return None


def now() -> int:
    """The present stamp, in units."""
    return flow.units(time.monotonic_ns())


def instances(bpffs: Path = BPFFS, run_dir: Path = RUN_DIR) -> list[str]:
    """Names of the instances that run, or left pins, in the default directories."""
    pinned = [path.name for path in (bpffs / "ferryline").glob("*") if path.is_dir()]
    return sorted({*pinned, *(path.stem for path in run_dir.glob("*.sock"))})
