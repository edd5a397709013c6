"""What the services hold at a moment: memory, descriptors, flows, keys in Redis."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import redis

from tests.chaos.stage import Stage
from tests.soak.flat import Series

EVERY_S = 5.0
SERVICES = ("relay", "transceiver", "signaling")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Samples(threading.Thread):
    """Samples of a stage each 5 s, by name. What a fault makes unreadable is left out."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(daemon=True)
        self.series: dict[str, list[tuple[float, float]]] = {}
        self._stage = stage
        self._over = threading.Event()
        self._began = time.monotonic()

    def run(self) -> None:
        while not self._over.wait(EVERY_S):
            for name, value in self._take():
                at = round(time.monotonic() - self._began, 1)
                self.series.setdefault(name, []).append((at, value))

    def stop(self) -> dict[str, Series]:
        self._over.set()
        self.join()
        return dict(self.series)

    def _take(self) -> Iterator[tuple[str, float]]:
        services = self._stage.services
        for name in SERVICES:
            program = services.programs.get(name)
            if program is not None and program.running:
                pids = family(program.pid)
                yield f"{name}_memory", round(sum(map(_resident, pids)) / 1e6, 2)
                yield f"{name}_descriptors", sum(map(_descriptors, pids))
        with suppress(OSError, ValueError, KeyError):
            yield "flows", len(services.flows())
        with suppress(redis.RedisError), self._stage.redis.client() as client:
            yield "redis_keys", float(str(client.dbsize()))


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _resident(pid: int) -> int:
    """Bytes; 0 for one that has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return 0


def _descriptors(pid: int) -> int:
    with suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0
