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
import signal
from collections.abc import Iterable

import uvloop

from relayctl.wire import address
from relayctl.wire.address import Address
from transceiver.backoff import Backoff
from transceiver.host import StartError
from transceiver.worker import Command, Worker

END_S = 5.0  # from "end at once" to SIGKILL
LOOK_EVERY_S = 1.0

log = logging.getLogger("transceiver.workers")


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
        failure = await worker.wait()
        if self._stopping.is_set():
            return
        if failure:
            await self._pause(failure, worker.lived_s)
        else:
            log.info("worker %s has drained; starting the next", address.render(self.endpoint))

    async def _pause(self, failure: str, lived_s: float) -> None:
        """After a failure: longer each time."""
        delay_s = self._backoff.after(lived_s)
        log.error(
            "worker %s %s after %.1f s, failure %d in a row; the next starts in %.0f s",
            *(address.render(self.endpoint), failure, lived_s, self._backoff.failures, delay_s),
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
            self._killing = asyncio.get_running_loop().call_later(
                END_S, self._signal_all, signal.SIGKILL
            )

    def roll(self) -> None:
        """Replace one worker after the other."""
        if self._stopping.is_set() or (self._rolling is not None and not self._rolling.done()):
            log.warning("workers are being drained already")
            return
        self._rolling = asyncio.create_task(self._roll())

    async def _roll(self) -> None:
        for slot in self._slots:
            before = await slot.following(None)
            if await before.ready():  # before that a signal would kill it
                before.signal(signal.SIGHUP)
            worker = await slot.following(before)
            if not await worker.ready():
                name = address.render(slot.endpoint)
                log.error("worker %s does not start; the others stay as they are", name)
                return
        log.info("all workers are replaced")

    async def _started(self) -> None:
        workers = [await slot.following(None) for slot in self._slots]
        ready = await asyncio.gather(*(worker.ready() for worker in workers))
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
                    worker.signal(signal.SIGKILL)


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
