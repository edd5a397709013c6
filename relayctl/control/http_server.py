"""Serves an ASGI application inside a running event loop, on a socket of our own."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from relayctl.wire.address import Address, render


class HttpServerError(Exception):
    """A listening socket cannot be made; the message names it and the mend."""


class HttpServer(uvicorn.Server):
    """A server that leaves signals to the daemon."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
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
