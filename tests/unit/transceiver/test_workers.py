"""The supervisor over small programs instead of transceivers; `test_workers_live.py` has those."""

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from relayctl.wire.address import Address
from transceiver import backoff, worker, workers
from transceiver.host import StartError
from transceiver.workers import Supervisor

ENDPOINTS: list[Address] = [("127.0.0.1", 5000 + number) for number in range(3)]
ENDS = "import os, signal, sys, time\nfor n in (1, 2): signal.signal(n, lambda *_: sys.exit(0))\n"
BEATS = "while True: os.write(int(sys.argv[1]), b'.'); time.sleep(0.05)\n"
GOOD = ENDS + BEATS
DEAF = "import os, signal, sys, time\nfor n in (1, 2): signal.signal(n, lambda *_: None)\n" + BEATS
HANGS = ENDS + "os.write(int(sys.argv[1]), b'.'); time.sleep(3600)\n"
FAILS = "raise SystemExit(3)"
READY_AND_FAILS = "import os, sys; os.write(int(sys.argv[1]), b'.'); sys.exit(3)"


class Fleet:
    """`programs` by port: the first of a list is run once, the last one ever after."""

    def __init__(self, **programs: list[str]) -> None:
        self.programs = {5000 + int(key[1:]): list(texts) for key, texts in programs.items()}
        self.started: list[int] = []
        self.supervisor = Supervisor(ENDPOINTS, self.command)

    def command(self, endpoint: Address, beat: int) -> list[str]:
        port = endpoint[1]
        self.started.append(port)
        texts = self.programs.get(port, [GOOD])
        text = texts.pop(0) if len(texts) > 1 else texts[0]
        return [sys.executable, "-c", text, str(beat)]

    def pids(self) -> list[int]:
        return [slot.worker.process.pid for slot in self.supervisor._slots if slot.worker]

    def ready(self) -> bool:
        found = [slot.worker for slot in self.supervisor._slots]
        return all(each and each.is_ready and not each.ended.is_set() for each in found)


def supervising(fleet: Fleet, scenario: Callable[[], Awaitable[None]]) -> None:
    """Run the supervisor beside `scenario`; then it has to end."""

    async def main() -> None:
        running = asyncio.create_task(fleet.supervisor.run())
        async with asyncio.timeout(50):
            try:
                await until(lambda: fleet.ready() or running.done())
                await scenario()
            finally:
                fleet.supervisor.end()
                await running

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


async def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_S", 0.05)
    monkeypatch.setattr(workers, "LOOK_EVERY_S", 0.05)


def test_a_killed_worker_is_replaced_and_the_others_stay() -> None:
    fleet = Fleet()

    async def scenario() -> None:
        first, second, third = fleet.pids()
        fleet.supervisor._slots[1].worker.process.kill()  # type: ignore[union-attr]
        await until(lambda: fleet.pids()[1] != second and fleet.ready())
        assert fleet.pids()[::2] == [first, third]

    supervising(fleet, scenario)


def test_a_crash_loop_is_told_and_slows_down(caplog: pytest.LogCaptureFixture) -> None:
    fleet = Fleet(_1=[READY_AND_FAILS])

    async def scenario() -> None:
        await until(lambda: fleet.started.count(5001) >= 4)

    supervising(fleet, scenario)
    told = [record.getMessage() for record in caplog.records if "in a row" in record.getMessage()]
    assert "worker 127.0.0.1:5001 ended with status 3" in told[0]
    assert [f"failure {n} in a row" in told[n - 1] for n in (1, 2, 3)] == [True] * 3
    assert fleet.started.count(5000) == 1


def test_a_worker_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SILENT_S", 2.0)
    fleet = Fleet(_2=[HANGS, GOOD])

    async def scenario() -> None:
        hanging = fleet.pids()[2]
        await until(lambda: fleet.pids()[2] != hanging and fleet.ready())

    supervising(fleet, scenario)
    assert sorted(fleet.started) == [5000, 5001, 5002, 5002]


def test_nothing_starts_if_one_does_not(caplog: pytest.LogCaptureFixture) -> None:
    fleet = Fleet(_1=[FAILS])

    async def scenario() -> None:
        """Nothing to do."""

    with pytest.raises(StartError, match=r"workers 127\.0\.0\.1:5001 did not start"):
        supervising(fleet, scenario)
    assert fleet.supervisor._stopping.is_set()


def test_workers_are_replaced_one_after_the_other() -> None:
    fleet = Fleet()

    async def scenario() -> None:
        before = fleet.pids()
        fleet.supervisor.roll()
        rolling = fleet.supervisor._rolling
        fleet.supervisor.roll()
        assert fleet.supervisor._rolling is rolling  # one at a time
        assert rolling is not None
        await rolling
        assert fleet.ready()
        assert not set(before) & set(fleet.pids())

    supervising(fleet, scenario)
    assert fleet.started == [5000, 5001, 5002] * 2


def test_replacing_stops_at_a_worker_that_does_not_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fleet = Fleet(_1=[GOOD, FAILS])

    async def scenario() -> None:
        last = fleet.pids()[2]
        fleet.supervisor.roll()
        assert fleet.supervisor._rolling is not None
        await fleet.supervisor._rolling
        assert fleet.pids()[2] == last

    supervising(fleet, scenario)
    assert "worker 127.0.0.1:5001 does not start; the others stay" in caplog.text
    assert 5002 not in fleet.started[3:]


def test_the_first_sigterm_drains_and_starts_nobody_again() -> None:
    fleet = Fleet(_0=[ENDS.replace("1, 2", "2,") + "signal.signal(1, lambda *_: None)\n" + BEATS])

    async def scenario() -> None:
        fleet.supervisor.terminate()
        slots = fleet.supervisor._slots
        await until(lambda: all(slot.worker and slot.worker.ended.is_set() for slot in slots[1:]))
        assert slots[0].worker is not None
        assert not slots[0].worker.ended.is_set()  # it still has calls
        fleet.supervisor.terminate()
        await until(slots[0].worker.ended.is_set)

    supervising(fleet, scenario)
    assert sorted(fleet.started) == [5000, 5001, 5002]


def test_who_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "END_S", 0.2)
    fleet = Fleet(_1=[DEAF])

    async def scenario() -> None:
        """Ends it."""

    supervising(fleet, scenario)
    deaf = fleet.supervisor._slots[1].worker
    assert deaf is not None
    assert deaf.process.returncode == -signal.SIGKILL


def test_a_stop_while_workers_start_reaches_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "END_S", 3600.0)
    fleet = Fleet()

    async def main() -> None:
        running = asyncio.create_task(fleet.supervisor.run())
        await asyncio.sleep(0)
        fleet.supervisor.end()
        async with asyncio.timeout(50):
            await running

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def test_a_program_that_is_not_there_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    fleet = Fleet()
    commands = iter([["/nowhere/python"]])
    there = fleet.command
    fleet.supervisor = Supervisor(ENDPOINTS, lambda at, fd: next(commands, None) or there(at, fd))

    async def scenario() -> None:
        await until(fleet.ready)

    supervising(fleet, scenario)
    assert "No such file" in caplog.text
