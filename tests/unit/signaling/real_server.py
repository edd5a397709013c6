"""`signaling.http.accepting.Server` on a socket, in a thread, with a small application behind it.

Times are long unless a test shortens one, and none is measured: what counts is how a connection
ends.
"""

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from signaling.faces import body
from signaling.front import HEARD
from signaling.http.accepting import Server
from signaling.http.gate import Gate
from signaling.refusal import Refused

SOON_S = 0.3
LATE_S = 60.0  # does not come in a test
PATIENCE_S = 20.0
BIG = 32 * 1024 * 1024
GET = b"GET /good HTTP/1.1\r\nHost: x\r\n\r\n"
GET_ONCE = GET.replace(b"Host", b"Connection: close\r\nHost")


async def good(request: Request) -> Response:
    heard = str(time.monotonic() >= request.scope["state"][HEARD])
    return PlainTextResponse("good", headers={"x-scheme": request.url.scheme, "x-heard": heard})


async def seen(request: Request) -> Response:
    """Names of headers, once all of the request is there."""
    await request.body()
    return PlainTextResponse(",".join(request.headers))


async def big(request: Request) -> Response:
    return Response(bytes(BIG))


async def read(request: Request) -> Response:
    return Response(await body.read_body(request, "text/plain"))


async def refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return Response(json.dumps(error.body()), error.status, error.headers())


async def echo(peer: WebSocket) -> None:
    await peer.accept()
    async for text in peer.iter_text():
        await peer.send_text(text * (BIG if text == "." else 1))


@dataclass(frozen=True)
class Served:
    gate: Gate
    port: int
    stop: Callable[[], None]

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        where = ("127.0.0.1", self.port)
        return socket.create_connection(where, PATIENCE_S, source_address=(source, 0))

    def answer(self, data: bytes, source: str = "127.0.0.1") -> bytes:
        """All that comes until the server closes."""
        with self.connect(source) as sock:
            sock.sendall(data)
            return rest(sock)

    def expect_good(self, source: str = "127.0.0.1") -> None:
        assert b"200 OK" in self.answer(GET_ONCE, source)

    def expect_inside(self, count: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(self.gate) != count and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(self.gate) == count


def rest(sock: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := sock.recv(65536):
            received += data
    return received


@contextlib.contextmanager
def serve(
    gate: Gate | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    loop: str = "uvloop",
    head_s: float = LATE_S,
    handshake_s: float = LATE_S,
    stall_s: float = LATE_S,
    listening: socket.socket | None = None,
) -> Iterator[Served]:
    gate = Gate(1000, 1000) if gate is None else gate
    app = Starlette(
        routes=[
            Route("/good", good),
            Route("/big", big),
            Route("/seen", seen, methods=["POST"]),
            Route("/body", read, methods=["POST"]),
            WebSocketRoute("/ws", echo),
        ],
        exception_handlers={Refused: refused},
    )
    server = Server(
        uvicorn.Config(
            app,
            loop=loop,
            log_config=None,
            access_log=False,
            ws_per_message_deflate=False,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=1,
        ),
        gate,
        tls,
        handshake_s=handshake_s,
        head_s=head_s,
        stall_s=stall_s,
    )
    listening = listening or socket.create_server(("127.0.0.1", 0), backlog=1024)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})

    def stop() -> None:
        server.should_exit = True
        thread.join()

    with listening:
        thread.start()
        try:
            yield Served(gate, listening.getsockname()[1], stop)
        finally:
            stop()


def code(answer: bytes) -> tuple[int, str]:
    head, _, text = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), str(json.loads(text)["error"]["code"])
