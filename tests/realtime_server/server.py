"""The test server's socket: handshakes, refusals, and a connection each."""

import asyncio
import contextlib
import dataclasses
import http
import time
from typing import Self

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from tests.realtime_server.connection import Connection
from tests.realtime_server.conversation import Event
from tests.realtime_server.record import Record
from tests.realtime_server.script import Script

MAX_MESSAGE = 16 * 1024 * 1024  # bytes


class RealtimeServer:
    """`async with`, or `start` and `stop`: it may start again, on the port it had.

    `script` may be another one at any time; a connection keeps the one it began with.
    """

    def __init__(self, script: Script | None = None, *, host: str = "127.0.0.1", port: int = 0):
        self.script = script or Script()
        self.record = Record()
        self.host, self.port = host, port
        self.connections: list[Connection] = []  # that are open
        self._server: Server | None = None
        self._faults = 0
        self._deaths = 0
        self._number = 0

    @property
    def url(self) -> str:
        return f"ws://{self.host}:{self.port}/v1/realtime"

    async def start(self) -> None:
        self._server = await serve(
            self._serve,
            self.host,
            self.port,
            process_request=self._admit,
            max_size=MAX_MESSAGE,
            compression=None,
            close_timeout=1,
        )
        self.port = next(iter(self._server.sockets)).getsockname()[1]

    async def stop(self) -> None:
        """Break all connections and answer no more."""
        if self._server is not None:
            self._server.close(close_connections=False)
            self.drop()
            await self._server.wait_closed()
            self._server = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def drop(self) -> None:
        """Break all connections, without a close frame; new ones are welcome."""
        for connection in self.connections:
            connection.drop()

    def say(self, event: Event) -> None:
        """Send a server event on all connections, as it is but for its id."""
        for connection in self.connections:
            connection.say(event)

    async def _admit(self, socket: ServerConnection, request: Request) -> Response | None:
        self.record.connects.append(time.monotonic())
        self.record.headers.append({k.lower(): v for k, v in request.headers.raw_items()})
        self.record.paths.append(request.path)
        script = self.script
        if self._faults >= script.fault_times:
            return None
        if script.refuse is not None:
            self._faults += 1
            status = http.HTTPStatus(script.refuse)
            response = socket.respond(status, f"{status.phrase}\n")
            if script.location is not None:
                response.headers["Location"] = script.location
            return response
        if script.never_answer:
            self._faults += 1
            await asyncio.sleep(3600)
        return None

    async def _serve(self, socket: ServerConnection) -> None:
        self._number += 1
        script = self.script
        if script.mute and self._faults >= script.fault_times:
            script = dataclasses.replace(script, mute=False)
        self._faults += script.mute
        connection = Connection(socket, self._number, script, self.record, self._may_die)
        self.connections.append(connection)
        try:
            await connection.run()
        finally:
            with contextlib.suppress(ValueError):
                self.connections.remove(connection)

    def _may_die(self) -> bool:
        self._deaths += 1
        return self._deaths <= self.script.die_times
