"""What is measured: four servers with one control API, each a process on a core of its own."""

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from relayctl.wire.route_token import Key, render_key
from tests.bench_media import go
from tests.bench_media.rig import DIRECTORY, SERVER_CPU, SERVER_HOST, SERVER_PORT, Rig
from tests.figures.measurement import MeasurementError
from tests.lab import http
from tests.lab.program import Program
from tests.lab.service_config import toml

_READY_S = 20.0
_AS_MANY_AS_COME = 20_000  # calls
_HOWEVER_LATE_MS = 10_000.0  # what the search is to find, admission would prevent


@dataclass(frozen=True)
class Kind:
    """`argv` is asked for each time, and may raise `MeasurementError`."""

    key: str
    name: str
    codec: str
    argv: Callable[[str, str], list[str]]  # of address and token


class Subject:
    """A running server; a context manager. It begins anew each time."""

    def __init__(self, rig: Rig, kind: Kind) -> None:
        self.kind = kind
        self.address = f"{SERVER_HOST}:{SERVER_PORT}"
        self.calls_url = f"http://{self.address}/v1/calls"
        self.token = secrets.token_hex(16)
        self._program = rig.popen(kind.key, kind.argv(self.address, self.token), cpu=SERVER_CPU)
        try:
            self._await(rig, self._program)
        except BaseException:
            self._program.stop()
            raise

    def __enter__(self) -> "Subject":
        return self

    def __exit__(self, *_: object) -> None:
        self._program.stop()

    def cpu_s(self) -> float:
        """User and system time of all its processes so far, in seconds."""
        return sum(_cpu_ticks(pid) for pid in self.pids()) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> dict[str, int]:
        """`rss` and, of it, `anonymous` of all its processes, in bytes.

        Anonymous is what the process has for itself, heaps and stacks. What it maps of libraries
        depends on who else has touched them.
        """
        found = {"rss": 0, "anonymous": 0}
        for pid in self.pids():
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
                name, _, value = line.partition(":")
                if name.lower() in found:
                    found[name.lower()] += int(value.split()[0]) * 1024
        return found

    def pids(self) -> list[int]:
        return list(_family(self._program.pid))

    def expect_running(self) -> None:
        """Raises `ProgramError` if it has ended."""
        self._program.expect_running()

    def _await(self, rig: Rig, program: Program) -> None:
        deadline = time.monotonic() + _READY_S
        while True:
            program.expect_running()
            try:
                if http.request(rig.node, f"http://{self.address}/healthz").status == 200:
                    return
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise MeasurementError(f"{self.kind.name} was not ready after {_READY_S:.0f} s")
            time.sleep(0.05)


def _ours(mode: str) -> Callable[[str, str], list[str]]:
    def argv(address: str, token: str) -> list[str]:
        keys = DIRECTORY / "route.keys"
        keys.touch(mode=0o600)
        keys.write_text(f"{render_key(Key(1, secrets.token_bytes(32)))}\n")
        config = DIRECTORY / f"transceiver-{mode}.toml"
        text = toml(
            {
                "listen": address,
                "inner": "plain",
                "cluster": 7,
                "keys_file": keys,
                "mint": 1,
                "control_token": token,
                "capacity": _AS_MANY_AS_COME,
                "max_lateness_ms": _HOWEVER_LATE_MS,
            }
        )
        config.touch(mode=0o600)
        config.write_text(f'{text}\n[echo]\nmode = "{mode}"\n')
        return [sys.executable, "-m", "transceiver", "serve", "--config", str(config)]

    return argv


def _stock(codec: str) -> Callable[[str, str], list[str]]:
    module = "tests.bench_media.stock_echo"
    return lambda address, token: [
        *(sys.executable, "-m", module, "--listen", address, "--codec", codec)
    ]


def _pion(address: str, token: str) -> list[str]:
    return [str(go.build("pion_echo")), "-listen", address]


ECHO = Kind("echo", "Ferryline, echo", "mono, 32 kb/s, complexity 5, FEC", _ours("audio"))
MIRROR = Kind("mirror", "Ferryline, mirror", "none", _ours("opus"))
STOCK = Kind("stock", "aiortc, echo", "stereo, 96 kb/s, complexity 10, no FEC", _stock("stock"))
STOCK_OURS = Kind(
    "stock_ours", "aiortc, our encoder settings", "mono, 32 kb/s, complexity 5, FEC", _stock("ours")
)
PION = Kind("pion", "Pion, mirror", "none", _pion)
KINDS = (ECHO, MIRROR, STOCK, STOCK_OURS, PION)


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _family(pid: int) -> Iterator[int]:
    """`pid` and all its descendants."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _family(int(child))
