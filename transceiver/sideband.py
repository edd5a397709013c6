"""A WebSocket beside a call: it reads the call's events and says some in the client's place.

What it reads is what the client's channel reads, in the names it asked for. It never holds up the
call: what it does not take in time waits here, within a bound, and then it is let go.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable

from starlette.websockets import WebSocket, WebSocketDisconnect

from transceiver.dialects.base import Dialect, Message
from transceiver.events import Event

MAX_SIDEBANDS = 4  # of a call
MAX_MESSAGE = 1 << 20  # bytes, of theirs; the server closes with 1009 above it
MAX_MESSAGES_PER_S = 200  # more wait in the socket
MAX_WAITING = 4 << 20  # bytes of ours that they did not take yet
CLOSE_S = 1.0  # to say goodbye

OVER = 1000  # codes of a close, RFC 6455 section 7.4.1
SLOW = 1008

Sleep = Callable[[float], Awaitable[None]]

log = logging.getLogger(__name__)


class Sideband:
    """A `Watcher` of a call. `run` lasts as long as the socket and the call do."""

    def __init__(
        self,
        socket: WebSocket,
        dialect: Dialect,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._socket = socket
        self._dialect = dialect
        self._clock = clock
        self._sleep = sleep
        self._waiting: deque[Message] = deque()
        self._size = 0  # of what waits
        self._filled = asyncio.Event()
        self._slow = asyncio.Event()
        self._over = False

    def told(self, event: Event) -> None:
        """For the line, see `Watcher`."""
        try:
            messages = self._dialect.said(event)
        except Exception:
            log.exception("fault in a dialect")
            return
        self._put(messages)

    def over(self) -> None:
        """For the line, see `Watcher`. What waits is still sent."""
        self._over = True
        self._filled.set()

    async def run(self, say: Callable[[Event], None]) -> None:
        """`say` takes each event of theirs. To be called once the socket is accepted."""
        tasks = [
            asyncio.ensure_future(task)
            for task in (self._write(), self._read(say), self._slow.wait())
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in outcomes:
            gone = isinstance(outcome, WebSocketDisconnect | asyncio.CancelledError)
            if isinstance(outcome, BaseException) and not gone:
                log.error("fault in a sideband", exc_info=outcome)
        await self._close()

    async def _write(self) -> None:
        while True:
            while self._waiting:
                message = self._waiting.popleft()
                self._size -= len(message)
                await self._send(message)
            if self._over:
                return
            self._filled.clear()
            await self._filled.wait()

    async def _send(self, message: Message) -> None:
        if isinstance(message, str):
            await self._socket.send_text(message)
        else:
            await self._socket.send_bytes(message)

    async def _read(self, say: Callable[[Event], None]) -> None:
        second, count = 0, 0
        while True:
            received = await self._socket.receive()
            if received["type"] == "websocket.disconnect":
                return
            if int(self._clock()) != second:
                second, count = int(self._clock()), 0
            count += 1
            if count > MAX_MESSAGES_PER_S:
                await self._sleep(second + 1 - self._clock())
            message = received.get("text")
            events, answers = self._dialect.received(
                received["bytes"] if message is None else message
            )
            self._put(answers)
            for event in events:
                say(event)

    def _put(self, messages: list[Message]) -> None:
        if self._slow.is_set() or self._over:
            return
        self._waiting += messages
        self._size += sum(map(len, messages))
        self._filled.set()
        if self._size > MAX_WAITING:
            self._waiting.clear()
            self._slow.set()

    async def _close(self) -> None:
        """A socket that takes nothing does not take this either: the server drops it then."""
        code, reason = (SLOW, "too slow") if self._slow.is_set() else (OVER, "")
        with contextlib.suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
            async with asyncio.timeout(CLOSE_S):
                await self._socket.close(code, reason)
