"""HTTP/1.1 to the transceivers' control APIs: connections that are kept, each with one request.

Thin I/O. A general client costs five to twenty times the CPU of the request it carries (httpx 1.4
ms, aiohttp 0.2, this 0.06), and an offer is answered with one such request. It speaks what those
servers speak and nothing more: no redirects, cookies, proxies, TLS or compression.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

import httptools

from relayctl.wire import address
from relayctl.wire.address import Address

MAX_CONNECTIONS = 256  # to one transceiver: more requests than these wait
CONNECT_S = 1.0
KEPT_S = 3.0  # without a request; the other side closes after 5, under a request if it comes then
MAX_REPLY = 1024 * 1024  # bytes


class NoReply(Exception):
    """No connection, no answer in time, or none that is HTTP."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. Names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Exchange(Protocol):
    """A request for a reply; `ControlHttp` is the one that uses a network."""

    async def ask(
        self,
        method: str,
        endpoint: Address,
        path: str,
        *,
        headers: Mapping[str, str],
        content: bytes,
        timeout_s: float,
    ) -> Reply:
        """Send a request, read its reply; `timeout_s` is for the reply, and as long may the wait
        for a free connection take. Raises `NoReply`."""

    def close(self) -> None:
        """Close the connections that are kept."""


@dataclass(slots=True)
class _Way:
    """What there is of connections to one endpoint."""

    places: asyncio.Semaphore
    idle: "dict[_Connection, None]" = field(default_factory=dict)  # the last used at the end
    users: int = 0  # requests that wait or are under way


class ControlHttp:
    """Keeps connections by endpoint: one that hangs does not hold up the others. `clock` gives
    seconds."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, connections: int = MAX_CONNECTIONS
    ) -> None:
        self._clock = clock
        self._connections = connections
        self._ways: dict[Address, _Way] = {}  # only those in use, or with a connection

    async def ask(
        self,
        method: str,
        endpoint: Address,
        path: str,
        *,
        headers: Mapping[str, str],
        content: bytes,
        timeout_s: float,
    ) -> Reply:
        request = _render(method, endpoint, path, headers, content)
        way = self._ways.get(endpoint)
        if way is None:
            way = self._ways[endpoint] = _Way(asyncio.Semaphore(self._connections))
        way.users += 1
        try:
            if way.places.locked():
                async with asyncio.timeout(timeout_s):
                    await way.places.acquire()
            else:
                await way.places.acquire()  # at once
            try:
                connection = self._kept(way) or await self._connect(endpoint, way)
                try:
                    return await connection.ask(request, timeout_s)
                finally:
                    self._put_back(way, connection)
            finally:
                way.places.release()
        except (OSError, TimeoutError) as error:
            raise NoReply(type(error).__name__) from None
        finally:
            way.users -= 1
            self._forget(endpoint, way)

    def close(self) -> None:
        for way in tuple(self._ways.values()):
            for connection in tuple(way.idle):
                connection.close()

    def _kept(self, way: _Way) -> "_Connection | None":
        """The one used last, taken out; if that one is too old, then they all are."""
        oldest = self._clock() - KEPT_S
        while way.idle:
            connection, _ = way.idle.popitem()
            if connection.usable and connection.used > oldest:
                return connection
            connection.close()
        return None

    async def _connect(self, endpoint: Address, way: _Way) -> "_Connection":
        def lost(connection: _Connection) -> None:
            way.idle.pop(connection, None)
            self._forget(endpoint, way)

        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_S):
            _, connection = await loop.create_connection(lambda: _Connection(lost), *endpoint)
        return connection

    def _put_back(self, way: _Way, connection: "_Connection") -> None:
        if connection.usable:
            connection.used = self._clock()
            way.idle[connection] = None
        else:
            connection.close()

    def _forget(self, endpoint: Address, way: _Way) -> None:
        """A way that nobody uses. It may be forgotten already, and another one be there."""
        if not way.users and not way.idle and self._ways.get(endpoint) is way:
            del self._ways[endpoint]


def _render(
    method: str, endpoint: Address, path: str, headers: Mapping[str, str], content: bytes
) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {address.render(endpoint)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if content or method == "POST":
        lines.append(f"Content-Length: {len(content)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + content


@dataclass(slots=True)
class _Heard:
    """A reply as far as it came."""

    headers: dict[str, str] = field(default_factory=dict)
    content: bytearray = field(default_factory=bytearray)


class _Connection(asyncio.Protocol):
    """One TCP connection. A fault of either side ends it, and with it the request under way."""

    def __init__(self, lost: "Callable[[_Connection], None]") -> None:
        self._lost = lost
        self.used = 0.0  # when it was put back
        self._parser = httptools.HttpResponseParser(self)
        self._heard = _Heard()
        self._received = 0  # bytes since the request
        self._waiting: asyncio.Future[Reply] | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def usable(self) -> bool:
        """Open, and nothing under way."""
        return self._transport is not None and self._waiting is None

    async def ask(self, request: bytes, timeout_s: float) -> Reply:
        """Raises `ConnectionError` or `TimeoutError`. A cancelled one leaves a connection that is
        not usable."""
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        self._received = 0
        self._transport.write(request)
        # not `asyncio.timeout`, which would blame the other side for our load: after the loop was
        # held up, what came meanwhile is read first
        timer = loop.call_later(timeout_s, self._fail, TimeoutError("no answer"))
        try:
            return await self._waiting
        finally:
            timer.cancel()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(ConnectionError("the connection was closed"))
        self._lost(self)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > MAX_REPLY:
            self._fail(ConnectionError("too long a reply"))
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            # the first also for what a callback raised
            self._fail(ConnectionError(f"no HTTP that is wanted: {type(error).__name__}"))

    def on_message_begin(self) -> None:
        if self._waiting is None:
            raise ValueError("an answer that nobody asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._heard.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._heard.content += body

    def on_message_complete(self) -> None:
        heard, self._heard = self._heard, _Heard()
        if self._parser.get_status_code() < 200:
            return  # not yet the answer, RFC 9110 section 15.2
        reply = Reply(self._parser.get_status_code(), heard.headers, bytes(heard.content))
        waiting, self._waiting = self._waiting, None
        if not self._parser.should_keep_alive():
            self.close()
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)

    def _fail(self, error: Exception) -> None:
        self.close()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)
