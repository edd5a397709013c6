"""What ties a worker to its supervisor: a pipe that beats, and a signal when the supervisor dies.

The worker writes a byte when it is ready and one each second. The supervisor learns from it that a
worker is ready, hangs, or is gone.
"""

import asyncio
import contextlib
import ctypes
import os
import signal

BEAT_S = 1.0

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with(supervisor: int) -> None:
    """Get SIGINT, which ends all calls and the process, when the process `supervisor` is gone."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
    if os.getppid() != supervisor:  # it went before we asked
        raise SystemExit(f"the supervisor {supervisor} is gone")


class Beat:
    """The worker's end, `fd`; beats until it is stopped."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        os.set_blocking(fd, False)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._fd, b".")
        self._timer = asyncio.get_running_loop().call_later(BEAT_S, self.start)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        os.close(self._fd)
