"""uvicorn's protocols for clients that take their time.

uvicorn does not bound how long a request's head takes, how much memory it has, how long a client
lets its answer lie, and how much it reads of one client before the others. A body's time is bounded
where it is read (`signaling.faces.body`), connections where they are accepted
(`signaling.http.accepting`).
"""

import asyncio
import functools
import http
import json
import time
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from signaling.front import HEARD
from signaling.http.gate import Gate, Visitor
from signaling.refusal import Code, Refused

HEAD_S = 10.0  # from the connection, or the last answer, to the end of a request's head
STALL_S = 10.0  # of a full send buffer
MAX_HEAD = 64 * 1024  # bytes, checked after each read
LONG_READ = 16 * 1024  # bytes; they may be ten thousand chunks or frames


class _Stall:
    """Ends a connection whose send buffer stays full."""

    def __init__(self, loop: asyncio.AbstractEventLoop, after_s: float) -> None:
        self._loop = loop
        self._after_s = after_s
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, transport: asyncio.Transport) -> None:
        self.end()
        self._timer = self._loop.call_later(self._after_s, transport.abort)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Turns:
    """Lets others have their turn after a long read: a client that sends without end is read again
    and again otherwise. `paused` tells whether uvicorn itself wants no more."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        paused: Callable[[], bool],
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._paused = paused

    def after(self, size: int) -> None:
        """`size` bytes were read and dealt with."""
        if size >= LONG_READ and not self._paused() and not self._transport.is_closing():
            self._transport.pause_reading()
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if not self._paused() and not self._transport.is_closing():
            self._transport.resume_reading()


class Http(HttpToolsProtocol):
    """One connection, of a `visitor` who is inside the `gate`."""

    def __init__(
        self,
        *arguments: Any,
        gate: Gate,
        visitor: Visitor,
        head_s: float = HEAD_S,
        stall_s: float = STALL_S,
        **others: Any,
    ) -> None:
        super().__init__(*arguments, **others)
        self._gate = gate
        self._visitor = visitor
        self._head_s = head_s
        self._stall = _Stall(self.loop, stall_s)
        self._head_timer: asyncio.TimerHandle | None = None
        self._in_head = False
        self._head_size = 0
        self.ws_protocol_class = functools.partial(  # type: ignore[assignment]
            WebSocket, leave=functools.partial(gate.leave, visitor), stall=self._stall
        )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._visitor.turn_out = transport.abort
        self._turns = Turns(self.loop, transport, lambda: self.flow.read_paused)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stall.end()
        self._forget_head()
        self._gate.leave(self._visitor)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        was_in_head = self._in_head
        super().data_received(data)
        self._turns.after(len(data))
        if was_in_head and self._in_head:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self._refuse(
                    Refused(
                        Code.HEAD_TOO_LARGE,
                        f"path and headers have more than {MAX_HEAD} bytes; leave some out",
                    )
                )

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_size = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else of a trailer: a proxy did not see it as one, and it has no end
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._forget_head()
        self._gate.works(self._visitor)
        super().on_headers_complete()  # which lets it have its turn later
        self.scope["state"][HEARD] = time.monotonic()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:  # else the next one is under way already
            self._expect_head()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Refused(Code.BAD_REQUEST, "this is no HTTP/1.1"))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall.begin(self.transport)

    def resume_writing(self) -> None:
        self._stall.end()
        super().resume_writing()

    def _expect_head(self) -> None:
        self._forget_head()
        self._head_timer = self.loop.call_later(self._head_s, self._head_is_late)
        self._gate.waits(self._visitor)

    def _head_is_late(self) -> None:
        if self.transport.is_closing() or not self._in_head:  # or its answer was never read
            self.transport.abort()
        else:
            self._refuse(
                Refused(
                    Code.REQUEST_TIMEOUT,
                    f"the request's head took more than {self._head_s:g} s; send it at once",
                )
            )

    def _refuse(self, refused: Refused) -> None:
        """Answer below the application, and close."""
        body = json.dumps(refused.body()).encode()
        head = (
            f"HTTP/1.1 {refused.status} {http.HTTPStatus(refused.status).phrase}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self._expect_head()  # the time for the answer to be fetched
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class WebSocket(WebSocketsSansIOProtocol):
    """The connection after its upgrade; `leave` is for its end."""

    def __init__(
        self, *arguments: Any, leave: Callable[[], None], stall: _Stall, **others: Any
    ) -> None:
        super().__init__(*arguments, **others)
        self._leave = leave
        self._stall = stall

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._turns = Turns(self.loop, transport, lambda: self.read_paused)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stall.end()
        self._leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._turns.after(len(data))

    def handle_cont(self, event: Frame) -> None:
        if event.data or event.fin:  # else nothing, and as often as one likes in a message
            super().handle_cont(event)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall.begin(self.transport)

    def resume_writing(self) -> None:
        self._stall.end()
        super().resume_writing()
