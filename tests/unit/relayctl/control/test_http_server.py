import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from relayctl.control import http_server
from relayctl.control.http_server import (
    CONNECTIONS,
    HttpServer,
    HttpServerError,
    listen_tcp,
    listen_unix,
)


async def hello(_: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


def test_an_application_on_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "relay.sock"
    listener = listen_unix(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600

    async def scene() -> str:
        async with serving(listener):
            transport = httpx.AsyncHTTPTransport(uds=str(path))
            async with httpx.AsyncClient(transport=transport, base_url="http://relay") as http:
                return (await http.get("/")).text

    assert asyncio.run(scene()) == "hello"
    listener.close()


@contextlib.asynccontextmanager
async def serving(listener: socket.socket) -> AsyncIterator[None]:
    server = HttpServer(Starlette(routes=[Route("/", hello)]))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    yield
    server.should_exit = True
    await task


REQUEST = b"GET / HTTP/1.1\r\nHost: relay\r\n\r\n"


async def opened(listener: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(*listener.getsockname())


def test_a_connection_too_many_is_closed_and_room_is_used_again() -> None:
    async def is_answered() -> bool:
        reader, writer = await opened(listener)
        writer.write(REQUEST)
        try:
            return (await reader.readline()).startswith(b"HTTP/1.1 200")
        except ConnectionError:
            return False
        finally:
            writer.close()

    async def scene() -> None:
        async with serving(listener):
            held = [await opened(listener) for _ in range(CONNECTIONS)]
            assert not await is_answered()
            held.pop()[1].close()
            async with asyncio.timeout(10):
                while not await is_answered():  # until the server has heard of it
                    pass
            for _, writer in held:
                writer.close()

    listener = listen_tcp(("127.0.0.1", 0))
    asyncio.run(scene())
    listener.close()


def test_who_asks_nothing_is_closed_and_who_asked_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_S", 0.5)

    async def scene() -> None:
        async with serving(listener):
            silent, silent_writer = await opened(listener)
            slow, slow_writer = await opened(listener)
            slow_writer.write(REQUEST[:-2])
            asking, asking_writer = await opened(listener)
            asking_writer.write(REQUEST)
            assert await silent.read() == b""
            assert await slow.read() == b""
            asking_writer.write(REQUEST)
            answers = await asking.readuntil(b"hello") + await asking.readuntil(b"hello")
            assert answers.count(b"200") == 2
            for writer in (silent_writer, slow_writer, asking_writer):
                writer.close()

    listener = listen_tcp(("127.0.0.1", 0))
    asyncio.run(scene())
    listener.close()


def test_a_socket_that_a_dead_process_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "relay.sock"
    listen_unix(path).close()
    assert path.exists()
    listen_unix(path).close()


def test_faults_name_the_place(tmp_path: Path) -> None:
    with pytest.raises(HttpServerError, match=r"missing/relay\.sock: No such file.*run_dir"):
        listen_unix(tmp_path / "missing" / "relay.sock")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HttpServerError, match=rf"admin = '127\.0\.0\.1:{port}'.*another"):
            listen_tcp(("127.0.0.1", port))
