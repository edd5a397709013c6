"""What was said in a turn, as text: pocketsphinx, for the backends that have no model of their own.

Optional, and small: English, and wrong often. It holds the interpreter's lock while it listens, up
to half a second at once, so it runs in a process of its own, one for all calls and below them in
priority; one thread waits for it. A few turns may wait, too; more have failed at once.
"""

import asyncio
import contextlib
import importlib.util
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, Protocol

RATE = 16_000  # Hz
MAX_WAITING = 8  # turns, beside the one that is being listened to
NICE = 10

Done = Callable[[str | None], None]


class RecogniserError(RuntimeError):
    """There is none; the message names what to install."""


class Ears(Protocol):
    def listen(self, samples: bytes) -> str:
        """Waits for the answer. Raises `OSError` or `EOFError` when there will be none."""

    def close(self) -> None:
        """From any thread: `listen` ends."""


class Recogniser:
    """One process's. `recognise` belongs to the running loop, and `done` is called there."""

    def __init__(self, make_ears: Callable[[], Ears] | None = None) -> None:
        """Starts its process. Raises `RecogniserError` without pocketsphinx."""
        if make_ears is None and importlib.util.find_spec("pocketsphinx") is None:
            raise RecogniserError(
                "transcribe needs pocketsphinx: pip install 'ferryline[transcribe]', "
                "or set transcribe = false"
            )
        self._make_ears = make_ears or Process
        self._ears = self._make_ears()
        self._thread = ThreadPoolExecutor(1, "recogniser")
        self._pending = 0
        self._closed = False

    def recognise(self, samples: bytes, done: Done) -> None:
        """`done` gets the text of 16-bit mono native samples, or None: too many turns wait, or it
        failed. That may be before this returns."""
        if self._closed or self._pending > MAX_WAITING:
            done(None)
            return
        self._pending += 1
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._thread, self._listen, samples)
        future.add_done_callback(lambda future: self._finish(future, done))

    def close(self) -> None:
        """Stop; turns that wait are not answered any more."""
        self._closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._ears.close()

    def _listen(self, samples: bytes) -> str | None:
        """In the thread. Who has died is replaced."""
        try:
            return self._ears.listen(samples)
        except (OSError, EOFError):
            if not self._closed:
                self._ears.close()
                self._ears = self._make_ears()
            return None

    def _finish(self, future: "asyncio.Future[str | None]", done: Done) -> None:
        self._pending -= 1
        if not future.cancelled() and not self._closed:
            done(future.result())


class Process:
    """`Ears` that are a process. It ends with the one that made it, whatever it does."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would share sockets and TLS state
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def listen(self, samples: bytes) -> str:
        self._pipe.send_bytes(samples)
        return str(self._pipe.recv())

    def close(self) -> None:
        self._process.kill()


def serve(pipe: Connection) -> None:
    """All that the process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: `close` ends this process
    os.nice(NICE)
    decoder = load()
    with contextlib.suppress(EOFError):  # who asks has died
        while True:
            pipe.send(understand(decoder, pipe.recv_bytes()))


def load() -> Any:
    """Make a decoder: half a second."""
    from pocketsphinx import Decoder

    return Decoder(samprate=RATE, fwdflat=False, loglevel="FATAL")


def understand(decoder: Any, samples: bytes) -> str:
    """The text of one turn."""
    if not samples:
        return ""
    decoder.start_utt()
    decoder.process_raw(samples, False, True)  # the whole of it, not as it comes
    decoder.end_utt()
    found = decoder.hyp()
    return "" if found is None else str(found.hypstr)
