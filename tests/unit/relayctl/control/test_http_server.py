import asyncio
import os
import socket
import stat
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from relayctl.control.http_server import HttpServer, HttpServerError, listen_tcp, listen_unix


async def hello(_: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


def test_an_application_on_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "relay.sock"
    listener = listen_unix(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600

    async def scene() -> str:
        server = HttpServer(Starlette(routes=[Route("/", hello)]))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        transport = httpx.AsyncHTTPTransport(uds=str(path))
        async with httpx.AsyncClient(transport=transport, base_url="http://relay") as http:
            text = (await http.get("/")).text
        server.should_exit = True
        await task
        return text

    assert asyncio.run(scene()) == "hello"
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
