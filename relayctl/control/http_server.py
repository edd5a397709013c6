"""Serves an ASGI application inside a running event loop, on a socket of our own.

Who holds connections open does not use up the daemon's file descriptors, and not for long the room
of others.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from relayctl.wire.address import Address, render

CONNECTIONS = 128  # at once, of each server
REQUEST_S = 10.0  # until a connection's first request has come whole


class HttpServerError(Exception):
    """A listening socket cannot be made; the message names it and the mend."""


class _Connection(H11Protocol):
    """Closed when it is one too many, or does not ask in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.close()
        else:
            self.loop.call_later(REQUEST_S, self._end_unasked)

    def _end_unasked(self) -> None:
        if self.cycle is None:
            self.transport.close()


class HttpServer(uvicorn.Server):
    """A server that leaves signals to the daemon."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",  # it warns of every request that is none
                access_log=False,
                timeout_graceful_shutdown=1,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen_tcp(address: Address) -> socket.socket:
    """Raises `HttpServerError`."""
    try:
        return socket.create_server(address, backlog=64)
    except OSError as error:
        raise HttpServerError(
            f"admin = {render(address)!r}: {error.strerror}; choose another address or port"
        ) from None


def listen_unix(path: Path) -> socket.socket:
    """A socket that only our user may use. Replaces one that a dead process left.

    Raises `HttpServerError`."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            sock.bind(str(path))
        finally:
            os.umask(before)
        sock.listen(64)
    except OSError as error:
        sock.close()
        raise HttpServerError(f"{path}: {error.strerror}; set another run_dir") from None
    return sock
