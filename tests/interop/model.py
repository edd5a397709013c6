"""The model that all clients talk with: a Realtime server beside the transceiver, in a thread.

What came to it and what it said can be read at any time, since both end up in this process.
"""

import asyncio
import threading

import numpy as np
from scipy.signal import resample_poly

from tests.lab import speech
from tests.lab.node import Node
from tests.realtime_server.script import Script
from tests.realtime_server.server import RealtimeServer
from tests.realtime_server.sound import RATE

HOST, PORT = "127.0.0.1", 24492
REPLY_S = 3.0
SCRIPT = Script(reply_s=REPLY_S, sound="speech", pace=4.0, chunk_ms=100)
_START_S = 10.0


class Model:
    """A context manager. `place`: the box of the transceiver."""

    def __init__(self, place: Node) -> None:
        self._place = place
        self._server = RealtimeServer(SCRIPT, host=HOST, port=PORT)
        self._started, self._stopping = threading.Event(), asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="model")

    def __enter__(self) -> "Model":
        self._thread.start()
        if not self._started.wait(_START_S):
            raise TimeoutError("the model does not start")
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    @property
    def url(self) -> str:
        return self._server.url

    def mark(self) -> int:
        """The number of the last conversation so far."""
        return max(self._server.record.audio, default=0)

    def heard(self, since: int) -> speech.Samples:
        """Everything that came in the first conversation after `since`, at 48 kHz."""
        audio = self._server.record.audio
        number = min((each for each in audio if each > since), default=None)
        pcm = np.frombuffer(bytes(audio[number]) if number else b"", "<i2")
        samples = pcm.astype(np.float32) / speech.FULL_SCALE
        return np.asarray(resample_poly(samples, speech.RATE, RATE), np.float32)

    def told(self, since: int, kind: str) -> int:
        """How many events of this kind came in conversations after `since`."""
        received = self._server.record.received
        return sum(entry.type == kind and entry.connection > since for entry in received)

    def _run(self) -> None:
        self._place.call(lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with self._server:
            self._started.set()
            await self._stopping.wait()
