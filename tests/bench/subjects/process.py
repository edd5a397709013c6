"""A relay that is a process on CPU 1 and makes its flows from the clients' first packets."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.bench.generator import Generator
from tests.bench.rig import RELAY_CPU, Rig
from tests.bench.subjects.base import Leg, NotRun
from tests.lab.program import Program

OPENING_RATE = 10_000.0  # first packets a second
_READY_S = 20.0
_REFRESH_S = 3.0


class ProcessRelay:
    """`opening` makes the generator of first packets for so many flows; None: it needs none.
    `refreshing`: that of packets which keep flows alive, one for each every few seconds."""

    def __init__(
        self,
        rig: Rig,
        ways: Sequence[Leg],
        name: str,
        argv: Sequence[str],
        *,
        ready: Callable[[], bool],
        opening: Callable[[int], Generator] | None = None,
        opening_rate: float = OPENING_RATE,
        refreshing: Callable[[], Generator] | None = None,
    ) -> None:
        self.name = name
        self.legs = tuple(ways)
        self._rig, self._argv, self._ready = rig, list(argv), ready
        self._opening, self._opening_rate = opening, opening_rate
        self._refreshing = refreshing
        self._refresher: Generator | None = None
        self._refreshed = 0.0
        self._program: Program | None = None

    def pids(self) -> list[int]:
        return list(_family(self._program.pid)) if self._program else []

    def start(self) -> None:
        """Nothing: a process that waits would cost the others time."""

    def carry(self, flows: int) -> None:
        """Raises `NotRun` if the process does not come up."""
        name = self.name.replace(" ", "-")
        argv = ["nice", "-n", "-15", "taskset", "-c", str(RELAY_CPU), *self._argv]
        try:
            self._program = self._rig.relay.popen(name, argv)
        except OSError as error:
            raise NotRun(f"{self._argv[0]}: {error.strerror}") from error
        self._await(self._program)
        if self._opening is not None:
            generator = self._opening(flows)
            try:
                for _ in range(2):  # the second for those that the first lost
                    send_each(generator, flows, self._opening_rate)
            finally:
                generator.close()
            time.sleep(0.1)
        self._refreshed = 0.0
        self.keep_alive(flows)

    def _await(self, program: Program) -> None:
        deadline = time.monotonic() + _READY_S
        while not self._ready():
            if not program.running:
                raise NotRun(f"{self.name} ended: {' | '.join(program.tail().splitlines()[-2:])}")
            if time.monotonic() > deadline:
                raise NotRun(f"{self.name} was not ready after {_READY_S:.0f} s")
            time.sleep(0.02)

    def keep_alive(self, flows: int) -> None:
        if self._refreshing is None or time.monotonic() - self._refreshed < _REFRESH_S:
            return
        if self._refresher is None:
            self._refresher = self._refreshing()
        send_each(self._refresher, flows, self._opening_rate)
        time.sleep(0.1)
        self._refreshed = time.monotonic()

    def rest(self) -> None:
        if self._program is not None:
            self._program.stop()
            self._program = None

    def stop(self) -> None:
        self.rest()
        if self._refresher is not None:
            self._refresher.close()
            self._refresher = None


def send_each(generator: Generator, flows: int, rate: float) -> None:
    """One frame of each client."""
    generator.send(flows, rate=rate, flows=flows, in_order=True, first=0)


def listens(rig: Rig, port: int) -> bool:
    """Does somebody in the relay's namespace have a UDP socket on `port`?"""
    table = rig.relay.call(Path("/proc/thread-self/net/udp").read_text)
    return any(line.split()[1].endswith(f":{port:04X}") for line in table.splitlines()[1:])


def _family(pid: int) -> Iterator[int]:
    """`pid` and all its descendants."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _family(int(child))
