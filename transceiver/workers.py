"""The supervisor of `serve --workers N`: starts worker processes, watches them, drains them.

It carries no media. A worker is this program without workers, serving one port of the range. It is
executed anew, not forked: an upgrade or another key file is taken up by restarting one worker after
the other, and nothing depends on what threads or sockets libraries made before a fork. That costs
40 MB per worker for what each imports; the libraries' code is shared by the kernel anyway.

Signals: SIGTERM drains all workers, a second one ends them; SIGINT ends them; SIGHUP drains and
replaces one worker after the other.
"""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence

import uvloop

from relayctl.wire import address
from relayctl.wire.address import Address
from transceiver.backoff import Backoff
from transceiver.host import StartError

START_S = 60.0  # a worker that is not ready by then never will be
SILENT_S = 10.0  # without a beat: it hangs, and so do its calls
END_S = 5.0  # from "end at once" to SIGKILL
LOOK_EVERY_S = 1.0

log = logging.getLogger("transceiver.workers")

Command = Callable[[Address, int], Sequence[str]]  # endpoint and descriptor to beat on


class Worker:
    """One running process. `ready` turns True at its first beat, or False if it ended before."""

    def __init__(self, endpoint: Address, process: asyncio.subprocess.Process, beat: int) -> None:
        self.endpoint = endpoint
        self.process = process
        self.ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()
        self.began = time.monotonic()
        self._heard = self.began
        self._beat = beat
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

    @property
    def lived_s(self) -> float:
        return time.monotonic() - self.began

    @property
    def hangs(self) -> bool:
        silent = time.monotonic() - self._heard
        return silent > (SILENT_S if self.ready.done() else START_S)

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def wait(self) -> int:
        """Its exit status, when it is gone."""
        status = await self.process.wait()
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._beat)
        os.close(self._beat)
        if not self.ready.done():
            self.ready.set_result(False)
        self.ended.set()
        return status

    def _read(self) -> None:
        if not os.read(self._beat, 4096):
            asyncio.get_running_loop().remove_reader(self._beat)
            return
        self._heard = time.monotonic()
        if not self.ready.done():
            self.ready.set_result(True)
            log.info("worker %s is ready, pid %d", address.render(self.endpoint), self.process.pid)


class Slot:
    """An endpoint and whoever serves it: when that one ends, another is started."""

    def __init__(self, endpoint: Address, command: Command, stopping: asyncio.Event) -> None:
        self.endpoint = endpoint
        self.worker: Worker | None = None
        self._command = command
        self._stopping = stopping
        self._backoff = Backoff()
        self._changed = asyncio.Event()

    async def keep(self) -> None:
        """Until `stopping`."""
        while True:
            try:
                worker = await Worker.start(self.endpoint, self._command)
            except OSError as error:
                await self._pause(str(error), 0.0)
            else:
                await self._serve(worker)
            if self._stopping.is_set():
                return

    async def following(self, worker: Worker | None) -> Worker:
        """The one after `worker`."""
        while self.worker is None or self.worker is worker:
            self._changed.clear()
            await self._changed.wait()
        return self.worker

    async def _serve(self, worker: Worker) -> None:
        """Until another one should start: at once after one that drained."""
        self.worker = worker
        self._changed.set()
        if self._stopping.is_set():  # while it was started: nobody told it
            worker.signal(signal.SIGINT)
        status = await worker.wait()
        if self._stopping.is_set():
            return
        if status == 0 and worker.ready.result():
            log.info("worker %s has drained; starting the next", address.render(self.endpoint))
        else:
            await self._pause(_ending(status), worker.lived_s)

    async def _pause(self, how: str, lived_s: float) -> None:
        """After a failure: longer each time."""
        delay_s = self._backoff.after(lived_s)
        log.error(
            "worker %s %s after %.1f s, failure %d in a row; the next starts in %.0f s",
            *(address.render(self.endpoint), how, lived_s, self._backoff.failures, delay_s),
        )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), delay_s)


class Supervisor:
    """All workers. `command` gives the command line of one."""

    def __init__(self, endpoints: Iterable[Address], command: Command) -> None:
        self._stopping = asyncio.Event()
        self._slots = [Slot(endpoint, command, self._stopping) for endpoint in endpoints]
        self._terms = 0
        self._rolling: asyncio.Task[None] | None = None
        self._killing: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Until it is told to end. Raises `StartError` if a worker does not get ready at first."""
        keeping = [asyncio.create_task(slot.keep()) for slot in self._slots]
        watching = asyncio.create_task(self._watch())
        try:
            await self._started()
        finally:
            await asyncio.gather(*keeping)
            watching.cancel()
            if self._killing is not None:
                self._killing.cancel()

    def terminate(self) -> None:
        """SIGTERM: the first drains, the second ends."""
        self._terms += 1
        if self._terms > 1:
            self.end()
        else:
            self._stop(signal.SIGHUP)

    def end(self) -> None:
        """End all calls now."""
        self._stop(signal.SIGINT)
        if self._killing is None:
            self._killing = asyncio.get_running_loop().call_later(END_S, self._signal_all, _KILL)

    def roll(self) -> None:
        """Replace one worker after the other."""
        if self._stopping.is_set() or (self._rolling is not None and not self._rolling.done()):
            log.warning("workers are being drained already")
            return
        self._rolling = asyncio.create_task(self._roll())

    async def _roll(self) -> None:
        for slot in self._slots:
            before = await slot.following(None)
            if await before.ready:  # before that a signal would kill it
                before.signal(signal.SIGHUP)
            worker = await slot.following(before)
            if not await worker.ready:
                name = address.render(slot.endpoint)
                log.error("worker %s does not start; the others stay as they are", name)
                return
        log.info("all workers are replaced")

    async def _started(self) -> None:
        workers = [await slot.following(None) for slot in self._slots]
        ready = await asyncio.gather(*(worker.ready for worker in workers))
        if all(ready) or self._stopping.is_set():
            return
        self.end()
        failed = [
            address.render(w.endpoint) for w, up in zip(workers, ready, strict=True) if not up
        ]
        raise StartError(f"workers {', '.join(failed)} did not start; what they say stands above")

    def _stop(self, how: signal.Signals) -> None:
        self._stopping.set()
        if self._rolling is not None:
            self._rolling.cancel()
        self._signal_all(how)

    def _signal_all(self, number: signal.Signals) -> None:
        for slot in self._slots:
            if slot.worker is not None:
                slot.worker.signal(number)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            for slot in self._slots:
                worker = slot.worker
                if worker is not None and not worker.ended.is_set() and worker.hangs:
                    log.error("worker %s hangs: killed", address.render(slot.endpoint))
                    worker.signal(_KILL)


def run(endpoints: Iterable[Address], command: Command) -> None:
    """Supervise until SIGINT or SIGTERM, and until all workers have ended. Raises `StartError`."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(endpoints, command))


async def _run(endpoints: Iterable[Address], command: Command) -> None:
    supervisor = Supervisor(endpoints, command)
    for number, handler in (
        (signal.SIGINT, supervisor.end),
        (signal.SIGTERM, supervisor.terminate),
        (signal.SIGHUP, supervisor.roll),
    ):
        asyncio.get_running_loop().add_signal_handler(number, handler)
    await supervisor.run()


def _ending(status: int) -> str:
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"


_KILL = signal.SIGKILL
