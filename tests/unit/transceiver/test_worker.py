import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
import uvloop

from relayctl.wire.address import Address
from transceiver import worker
from transceiver.worker import Worker

ENDPOINT: Address = ("127.0.0.1", 5000)
READS = "import os, sys; "
BEATS = "os.write(int(sys.argv[1]), b'.'); "


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await (await start(READS)).wait()  # the loop opens what it needs for children
            before = os.listdir("/proc/self/fd")
            await scenario()
            assert os.listdir("/proc/self/fd") == before

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


async def start(text: str) -> Worker:
    return await Worker.start(ENDPOINT, lambda _, beat: [sys.executable, "-c", text, str(beat)])


@pytest.mark.parametrize(
    ("text", "ready", "ending"),
    [
        pytest.param(READS + BEATS, True, "", id="good"),
        pytest.param(READS, False, "ended with status 0", id="never_ready"),
        pytest.param(READS + "sys.exit(3)", False, "ended with status 3", id="failed"),
        pytest.param(READS + BEATS + "sys.exit(1)", True, "ended with status 1", id="later"),
        pytest.param(
            READS + BEATS + "os.kill(os.getpid(), 9)", True, "was killed by signal 9", id="killed"
        ),
    ],
)
def test_tells_whether_it_began_and_how_it_ended(text: str, ready: bool, ending: str) -> None:
    async def scenario() -> None:
        started = await start(text)
        told = asyncio.create_task(started.ready())
        assert await started.wait() == ending
        assert await told is ready
        assert started.ended.is_set()
        started.signal(signal.SIGTERM)  # to nobody, which is no error

    run(scenario)


def test_a_beat_that_lies_in_the_pipe_at_the_end_counts() -> None:
    class Ended:
        pid = 1

        async def wait(self) -> int:
            return 0

    async def scenario() -> None:
        ours, theirs = os.pipe()
        os.write(theirs, b".")
        os.close(theirs)
        ended = Worker(ENDPOINT, cast(asyncio.subprocess.Process, Ended()), ours)
        assert await ended.wait() == ""
        assert ended.is_ready

    run(scenario)


def test_hangs_when_it_does_not_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        started = await start(READS + BEATS + "sys.stdin.close(); import time; time.sleep(60)")
        assert await started.ready()
        assert not started.hangs
        monkeypatch.setattr(worker, "SILENT_S", -1.0)
        assert started.hangs
        started.signal(signal.SIGKILL)
        await started.wait()

    run(scenario)


def test_has_more_time_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(worker, "SILENT_S", -1.0)
        started = await start("import time; time.sleep(60)")
        assert not started.hangs
        monkeypatch.setattr(worker, "START_S", -1.0)
        assert started.hangs
        started.signal(signal.SIGKILL)
        await started.wait()

    run(scenario)


def test_a_program_that_is_not_there_leaves_nothing_open() -> None:
    async def scenario() -> None:
        with pytest.raises(FileNotFoundError):
            await Worker.start(ENDPOINT, lambda _, beat: ["/nowhere/python"])

    run(scenario)
