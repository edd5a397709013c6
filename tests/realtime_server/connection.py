"""One WebSocket of the test server: the conversation behind it, and its faults."""

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import Callable, Coroutine

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from tests.realtime_server import beta
from tests.realtime_server.conversation import Conversation, Event
from tests.realtime_server.record import Entry, Record
from tests.realtime_server.reply import Reply
from tests.realtime_server.script import Script


class Connection:
    """`may_die()` tells, once a reply is so far, whether the connection still is to break."""

    def __init__(
        self,
        socket: ServerConnection,
        number: int,
        script: Script,
        record: Record,
        may_die: Callable[[], bool],
    ) -> None:
        self.number = number
        self._socket = socket
        self._script = script
        self._record = record
        self._may_die = may_die
        self._events = itertools.count(1)
        self._outgoing: asyncio.Queue[str] = asyncio.Queue()
        self._reply: Reply | None = None
        self._began = time.monotonic()
        self.conversation = Conversation(script, self.say, self._respond, self._cancel, number)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        self._start(self._send())
        try:
            if self._script.mute:
                await self._socket.wait_closed()
                return
            self.conversation.begin()
            for text in self._script.stray:
                self._outgoing.put_nowait(text)
            await self._read()
        except ConnectionClosed:
            pass
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def say(self, event: Event) -> None:
        """Send a server event; event ids are made here."""
        told: Event | None = {"event_id": f"event_{self.number}_{next(self._events)}", **event}
        if self._script.dialect == "beta":
            told = beta.said(told or {})
        if told is None:
            return
        if not told["type"].endswith("audio.delta"):
            self._record.said.append(Entry(time.monotonic(), self.number, told))
        self._outgoing.put_nowait(json.dumps(told))

    def drop(self) -> None:
        """Break the connection, without a close frame."""
        self._socket.transport.abort()

    async def _send(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self._socket.send(await self._outgoing.get())
                self._outgoing.task_done()

    async def _read(self) -> None:
        deaf = self._script.deaf_after_s
        async for message in self._socket:
            event = json.loads(message)
            self._record.note(self.number, event)
            if self._script.dialect == "beta":
                event = beta.heard(event)
            self.conversation.event(event)
            if deaf is not None and time.monotonic() - self._began >= deaf:
                deaf = None
                await asyncio.sleep(self._script.deaf_s)

    def _respond(self, overrides: Event) -> None:
        self._reply = Reply(self.conversation, overrides, self.say, self._spoken)
        self._start(self._reply.run())

    def _cancel(self, reason: str) -> None:
        if self._reply is not None:
            self._reply.cancel(reason)

    def _spoken(self, seconds: float) -> None:
        script = self._script
        if script.hang_up_after_s is not None and seconds >= script.hang_up_after_s:
            self._start(self._hang_up())
        elif script.die_after_s is not None and seconds >= script.die_after_s and self._may_die():
            self._start(self._die())

    async def _hang_up(self) -> None:
        await self._outgoing.join()
        await self._socket.close(1000)

    async def _die(self) -> None:
        await self._outgoing.join()
        self.drop()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
