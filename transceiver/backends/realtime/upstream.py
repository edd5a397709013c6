"""The WebSocket to the upstream server: connects, reads all the time, sends what waits, comes back.

A thin shell: what to say is `table.py`'s, what waits is `backlog.py`'s. Nothing of the key, of the
URL's path and query, or of what the server says about them reaches a log or a client.
"""

import asyncio
import contextlib
import logging
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from transceiver.backends.realtime import faults, names, wire
from transceiver.backends.realtime.backlog import Backlog, Entry
from transceiver.backends.realtime.faults import Fault
from transceiver.backends.realtime.target import Target, retry_s
from transceiver.events import Event

MAX_MESSAGE = 16 * 1024 * 1024  # bytes
PING_S = 20.0  # between pings, and until an unanswered one ends the connection
CLOSE_S = 1.0  # for the server to answer a close
HUNG_UP = 1000  # code of a close: the server is done, RFC 6455 section 7.4.1
GOOD_S = 10.0  # a connection that lived so long ends an outage

_BEFORE_MEDIA = ("session.", "error")  # events that do not wait for the call's sound

log = logging.getLogger(__name__)

_MUTE = logging.Logger("websocket", logging.CRITICAL)  # the library's would write headers: keys


class _Straight(connect):
    """Goes nowhere else: our key may be in any header, and the library takes only those that it
    knows away from whoever it is sent to."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class Owner(Protocol):
    """Who the upstream works for."""

    def message(self, event: Event) -> None:
        """The server says this, in the names of general availability."""

    def sent(self, event: Event) -> None:
        """This event is going out."""

    def lost(self, fault: Fault, detail: str) -> None:
        """There is no server; it is tried again. `detail` is for a log."""

    def hung_up(self) -> None:
        """The server has ended the conversation; nothing follows."""

    def crashed(self) -> None:
        """A fault of ours, which is logged; nothing follows."""


class Upstream:
    """Connects at once. `model`: what the client asks for. `random()` gives 0..1. To be made within
    a running loop."""

    def __init__(
        self,
        target: Target,
        model: object,
        backlog: Backlog,
        owner: Owner,
        *,
        clock: Callable[[], float],
        random: Callable[[], float],
        tls: ssl.SSLContext | None,
    ) -> None:
        self.garbage = 0  # messages that are no events
        self._target = target
        self._url = target.address(model)
        self._backlog = backlog
        self._owner = owner
        self._clock = clock
        self._random = random
        self._tls = tls if target.is_secure else None
        self._first: deque[Event] = deque()
        self._filled = asyncio.Event()
        self._begun = asyncio.Event()
        self._outage: float | None = None  # since when
        self._task = asyncio.get_running_loop().create_task(self._run())

    def send(self, event: Event) -> None:
        """Send before everything that waits."""
        self._first.append(event)
        self._filled.set()

    def wake(self) -> None:
        """The backlog has more to send."""
        self._filled.set()

    def begin(self) -> None:
        """The call has sound: from now on all is read. Until then a few events are."""
        self._begun.set()

    def close(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        try:
            while True:
                if await self._attempt():
                    self._owner.hung_up()
                    return
                await asyncio.sleep(self._pause())
        except Exception:
            log.exception("fault in a connection to a backend")
            self._owner.crashed()

    async def _attempt(self) -> bool:
        """One connection; whether the server hung up."""
        began = self._clock()
        fault = Fault.UNAVAILABLE
        try:
            async with asyncio.timeout(self._target.connect_s):
                socket, first = await self._connect()
        except InvalidStatus as error:
            status = error.response.status_code
            fault, detail = faults.of_status(status), f"HTTP {status}"
        except (OSError, TimeoutError, WebSocketException) as error:
            detail = faults.reason(error)
        else:
            if await self._converse(socket, first):
                return True
            detail = faults.lost(socket.close_code)
        if self._clock() - began >= GOOD_S + self._target.connect_s:
            self._outage = None
        self._first.clear()
        self._owner.lost(fault, detail)
        return False

    def _pause(self) -> float:
        """Seconds until the next attempt."""
        now = self._clock()
        self._outage = now if self._outage is None else self._outage
        return retry_s(now - self._outage, self._random())

    async def _connect(self) -> tuple[ClientConnection, str | bytes]:
        """A connection, and the server's first word."""
        socket = await _Straight(
            self._url,
            additional_headers=self._target.all_headers(),
            compression=None,  # sound does not get smaller
            open_timeout=None,
            ping_interval=PING_S,
            ping_timeout=PING_S,
            close_timeout=CLOSE_S,
            max_size=MAX_MESSAGE,
            ssl=self._tls,
            logger=_MUTE,
        )
        try:
            return socket, await socket.recv()
        except BaseException:
            socket.transport.abort()
            raise

    async def _converse(self, socket: ClientConnection, first: str | bytes) -> bool:
        """Until the connection ends; whether the server hung up."""
        writer = asyncio.get_running_loop().create_task(self._write(socket))
        try:
            await self._hear(first)
            async for message in socket:
                await self._hear(message)
        except ConnectionClosed:
            pass
        finally:
            await self._leave(socket, writer)
        if not writer.cancelled():
            writer.result()  # a fault of ours
        return socket.close_code == HUNG_UP

    async def _leave(self, socket: ClientConnection, writer: asyncio.Task[None]) -> None:
        """Say goodbye. Whatever the server does, and if the call ends meanwhile: nothing stays."""
        writer.cancel()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2 * CLOSE_S):  # `close` waits for room to write, too
                    await asyncio.wait([writer])
                    await socket.close()
        finally:
            socket.transport.abort()

    async def _hear(self, message: str | bytes) -> None:
        for event in self._read(message):
            if not event["type"].startswith(_BEFORE_MEDIA) and not self._begun.is_set():
                await self._begun.wait()
            self._owner.message(event)

    def _read(self, message: str | bytes) -> Iterator[Event]:
        event = wire.read(message)
        if event is None:
            self.garbage += 1
        elif self._target.dialect == "beta":
            yield from names.down(event)
        else:
            yield event

    async def _write(self, socket: ClientConnection) -> None:
        """Send what waits, as it may go, until the connection ends."""
        while True:
            self._filled.clear()
            entry = self._first.popleft() if self._first else self._backlog.take(self._clock())
            if entry is None:
                await self._wait()
                continue
            try:
                await socket.send(self._text(entry))
            except ConnectionClosed:
                if isinstance(entry, bytes):  # an event may have come through, see `Table.lost`
                    self._backlog.restore(entry)
                return
            except Exception:
                socket.transport.abort()
                raise

    def _text(self, entry: Entry) -> str:
        if isinstance(entry, bytes):
            return wire.append(entry)
        self._owner.sent(entry)
        return wire.text(names.up(entry) if self._target.dialect == "beta" else entry)

    async def _wait(self) -> None:
        """For something to send."""
        delay = self._backlog.delay(self._clock())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay if delay < GOOD_S else None):
                await self._filled.wait()
