"""One worker process, as its supervisor sees it: started, heard, signalled, gone."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Sequence

from relayctl.wire import address
from relayctl.wire.address import Address

START_S = 60.0  # a worker that is not ready by then never will be
SILENT_S = 10.0  # without a beat: it hangs, and so do its calls

log = logging.getLogger("transceiver.workers")

Command = Callable[[Address, int], Sequence[str]]  # endpoint and descriptor to beat on


class Worker:
    """One running process. `settled` when it has beaten for the first time, or has ended."""

    def __init__(self, endpoint: Address, process: asyncio.subprocess.Process, beat: int) -> None:
        self.endpoint = endpoint
        self.process = process
        self.is_ready = False
        self.settled = asyncio.Event()
        self.ended = asyncio.Event()
        self.began = time.monotonic()
        self._heard = self.began
        self._beat = beat
        os.set_blocking(beat, False)
        asyncio.get_running_loop().add_reader(beat, self._read)

    @classmethod
    async def start(cls, endpoint: Address, command: Command) -> "Worker":
        """Raises `OSError`."""
        ours, theirs = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *command(endpoint, theirs), pass_fds=(theirs,), stdin=asyncio.subprocess.DEVNULL
            )
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return cls(endpoint, process, ours)

    async def ready(self) -> bool:
        """Whether it has begun to serve, once that is known."""
        await self.settled.wait()
        return self.is_ready

    @property
    def lived_s(self) -> float:
        return time.monotonic() - self.began

    @property
    def hangs(self) -> bool:
        silent = time.monotonic() - self._heard
        return silent > (SILENT_S if self.settled.is_set() else START_S)

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def wait(self) -> str:
        """How it ended, when it is gone; "" if it was ready, and all went well."""
        status = await self.process.wait()
        with contextlib.suppress(BlockingIOError):
            self._read()  # a last beat may lie there
        asyncio.get_running_loop().remove_reader(self._beat)
        os.close(self._beat)
        self.settled.set()
        self.ended.set()
        if status < 0:
            return f"was killed by signal {-status}"
        return f"ended with status {status}" if status or not self.is_ready else ""

    def _read(self) -> None:
        if not os.read(self._beat, 4096):
            asyncio.get_running_loop().remove_reader(self._beat)
            return
        self._heard = time.monotonic()
        if not self.is_ready:
            self.is_ready = True
            self.settled.set()
            log.info("worker %s is ready, pid %d", address.render(self.endpoint), self.process.pid)
