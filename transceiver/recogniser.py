"""What was said in a turn, as text: pocketsphinx, for the backends that have no model of their own.

Optional, and small: English, and wrong often. It holds the interpreter's lock while it listens, up
to half a second at once, so it runs in a process of its own, one for all calls and below them in
priority. A few turns may wait for it; more have failed at once.
"""

import asyncio
import importlib.util
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from typing import Any

RATE = 16_000  # Hz
MAX_WAITING = 8  # turns, beside the one that is being listened to
NICE = 10

Done = Callable[[str | None], None]

_decoder: Any = None  # of the recogniser's own process


class RecogniserError(RuntimeError):
    """There is none; the message names what to install."""


class Recogniser:
    """One process's. `recognise` belongs to the running loop, and `done` is called there."""

    def __init__(self, make_executor: Callable[[], Executor] | None = None) -> None:
        """Starts its process. Raises `RecogniserError` without pocketsphinx."""
        if make_executor is None and importlib.util.find_spec("pocketsphinx") is None:
            raise RecogniserError(
                "transcribe needs pocketsphinx: pip install 'ferryline[transcribe]', "
                "or set transcribe = false"
            )
        self._make_executor = make_executor or _make_process
        self._executor: Executor | None = self._make_executor()
        self._pending = 0

    def recognise(self, samples: bytes, done: Done) -> None:
        """`done` gets the text of 16-bit mono native samples, or None: too many turns wait, or it
        failed. That may be before this returns."""
        if self._executor is None or self._pending > MAX_WAITING:
            done(None)
            return
        loop = asyncio.get_running_loop()
        try:
            future = loop.run_in_executor(self._executor, listen, samples)
        except BrokenExecutor:
            self._mend()
            done(None)
            return
        self._pending += 1
        future.add_done_callback(lambda future: self._finish(future, done))

    def close(self) -> None:
        """Stop; turns that wait are not answered any more."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)

    def _finish(self, future: "asyncio.Future[str]", done: Done) -> None:
        self._pending -= 1
        if future.cancelled() or self._executor is None:
            return
        error = future.exception()
        if isinstance(error, BrokenExecutor):
            self._mend()
        done(None if error else future.result())

    def _mend(self) -> None:
        """Its process died: another one."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = self._make_executor()


def listen(samples: bytes) -> str:
    """The text of one turn; in the recogniser's process."""
    if not samples:
        return ""
    _decoder.start_utt()
    _decoder.process_raw(samples, False, True)  # the whole of it, not as it comes
    _decoder.end_utt()
    found = _decoder.hyp()
    return "" if found is None else found.hypstr


def load() -> None:
    """Make the decoder that `listen` uses: half a second."""
    global _decoder
    from pocketsphinx import Decoder

    os.nice(NICE)
    _decoder = Decoder(samprate=RATE, fwdflat=False, loglevel="FATAL")


def _make_process() -> Executor:
    context = multiprocessing.get_context("spawn")  # a fork would share sockets and TLS state
    executor = ProcessPoolExecutor(1, context, initializer=load)
    executor.submit(listen, b"")  # the process starts at its first work
    return executor
