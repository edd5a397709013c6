import asyncio
import contextlib
import os
import subprocess
import sys
import time

import pytest

from transceiver import lifeline
from transceiver.lifeline import Beat

CHILD = (
    "import os, signal, sys, time; from transceiver import lifeline\n"
    "signal.signal(signal.SIGINT, lambda *_: (os.write(1, b'told'), sys.exit(0)))\n"
    "lifeline.die_with(int(sys.argv[1])); os.write(1, b'ready '); time.sleep(60)\n"
)


def test_a_worker_is_told_when_its_supervisor_dies() -> None:
    parent = (
        "import os, subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {CHILD!r}, str(os.getpid())]).wait()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.read(6) == b"ready "
    process.kill()
    assert process.stdout.read() == b"told"  # until nobody holds the pipe: all are gone
    process.wait()
    process.stdout.close()


def test_a_worker_whose_supervisor_is_gone_already_does_not_begin() -> None:
    script = "from transceiver import lifeline; lifeline.die_with(1 << 22)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "the supervisor 4194304 is gone" in done.stderr
    assert done.returncode == 1


def test_beats_at_once_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifeline, "BEAT_S", 0.01)
    ours, theirs = os.pipe()

    async def main() -> None:
        beat = Beat(theirs)
        beat.start()
        assert os.read(ours, 9) == b"."
        deadline = time.monotonic() + 20
        heard = b""
        os.set_blocking(ours, False)
        while len(heard) < 3 and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
            try:
                heard += os.read(ours, 9)
            except BlockingIOError:
                continue
        assert len(heard) >= 3
        beat.stop()

    asyncio.run(main())
    assert os.read(ours, 999).strip(b".") == b""  # and then its end
    os.close(ours)


def test_nobody_listens_any_more() -> None:
    ours, theirs = os.pipe()
    os.close(ours)

    async def main() -> None:
        beat = Beat(theirs)
        beat.start()
        beat.stop()

    asyncio.run(main())


def test_a_pipe_that_nobody_empties_is_no_wait() -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(theirs, bytes(4096)):
            """Until it is full."""

    async def main() -> None:
        beat = Beat(theirs)
        beat.start()
        beat.stop()

    asyncio.run(main())
    os.close(ours)
