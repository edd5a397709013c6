"""uvicorn's server with its own door: each connection passes the gate before TLS begins.

uvicorn leaves accepting to the event loop, which counts nothing, and tells a protocol about a
connection only after its TLS handshake.
"""

import asyncio
import logging
import socket
import ssl
from types import FrameType
from typing import Any

import uvicorn

from signaling.http.gate import Gate, Visitor
from signaling.http.slow_clients import Http

log = logging.getLogger("signaling")

HANDSHAKE_S = 10.0
BATCH = 64  # connections accepted before others have their turn
NO_FILES_S = 0.1  # until the next try, when the process can open none


class Server(uvicorn.Server):
    """Serves `config`'s application on the sockets that `run` is given."""

    def __init__(
        self,
        config: uvicorn.Config,
        gate: Gate,
        tls: ssl.SSLContext | None = None,
        *,
        handshake_s: float = HANDSHAKE_S,
        **limits: float,
    ) -> None:
        """`limits`: those of `signaling.http.slow_clients.Http`."""
        super().__init__(config)
        self._gate = gate
        self._tls = tls
        self._handshake_s = handshake_s if tls is not None else None
        self._limits = limits
        self._connecting: set[asyncio.Task[None]] = set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The second signal ends it at once, whichever it is."""
        self.force_exit = self.should_exit
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        for listening in sockets or ():
            listening.setblocking(False)
            self._watch(listening)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in sockets or ():
            asyncio.get_running_loop().remove_reader(listening)
        for task in self._connecting:
            task.cancel()
        await super().shutdown(sockets)

    def _watch(self, listening: socket.socket) -> None:
        asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(BATCH):
            try:
                sock, peer = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                loop = asyncio.get_running_loop()
                loop.remove_reader(listening)
                loop.call_later(NO_FILES_S, self._watch_again, listening)
                return
            self._admit(sock, peer)

    def _watch_again(self, listening: socket.socket) -> None:
        if not self.should_exit:
            self._watch(listening)

    def _admit(self, sock: socket.socket, peer: Any) -> None:
        host = peer[0] if isinstance(peer, tuple) else ""
        visitor = self._gate.enter(host, lambda: None)
        if visitor is None:
            sock.close()
            return
        sock.setblocking(False)
        task = asyncio.get_running_loop().create_task(self._connect(sock, visitor))
        visitor.turn_out = task.cancel
        self._connecting.add(task)

        def connected(task: asyncio.Task[None]) -> None:
            self._connecting.discard(task)
            fault = None if task.cancelled() else task.exception()
            if task.cancelled() or fault is not None:
                self._gate.leave(visitor)
                sock.close()
            if fault is not None and not isinstance(fault, OSError):  # TLS and time-out are some
                log.error("a connection failed", exc_info=fault)

        task.add_done_callback(connected)

    async def _connect(self, sock: socket.socket, visitor: Visitor) -> None:
        def protocol() -> Http:
            return Http(
                config=self.config,
                server_state=self.server_state,
                app_state=self.lifespan.state,
                gate=self._gate,
                visitor=visitor,
                **self._limits,
            )

        await asyncio.get_running_loop().connect_accepted_socket(
            protocol, sock, ssl=self._tls, ssl_handshake_timeout=self._handshake_s
        )
