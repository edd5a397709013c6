import contextlib
import datetime
import errno
import logging
import signal
import socket
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
import uvicorn
import websockets.sync.client

from signaling.http import certificate
from signaling.http.accepting import Server
from signaling.http.gate import Gate
from tests.unit.signaling.real_server import GET, GET_ONCE, PATIENCE_S, SOON_S, rest, serve


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "uvicorn.error")


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The server's, and one that trusts it."""
    directory: Path = tmp_path_factory.mktemp("tls")
    cert, key = directory / "c.pem", directory / "k.pem"
    certificate.ensure(cert, key, ("127.0.0.1",), datetime.datetime.now(datetime.UTC))
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(cert, key)
    return ours, ssl.create_default_context(cafile=str(cert))


def expect_open(connections: list[socket.socket], most: int) -> None:
    """No more than `most` of these are open in the end."""
    deadline = time.monotonic() + PATIENCE_S
    while (count := sum(map(is_open, connections))) > most and time.monotonic() < deadline:
        time.sleep(0.05)
    assert count <= most


def is_open(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def test_idle_connections_are_bounded_and_a_good_client_is_served() -> None:
    with serve(Gate(300, 100)) as served, contextlib.ExitStack() as held:
        connections = []
        for number in range(2000):
            sock = served.connect(f"127.0.1.{1 + number % 20}")
            connections.append(held.enter_context(sock))
            if number % 500 == 499:
                served.expect_good()
                assert len(served.gate) <= 300
        expect_open(connections, 300)
        served.expect_good("127.0.1.1")
        served.expect_good()


def test_one_address_does_not_get_all() -> None:
    with serve(Gate(1000, 5)) as served, contextlib.ExitStack() as held:
        for _ in range(5):
            held.enter_context(served.connect())
        served.expect_inside(5)
        assert served.answer(b"") == b""
        served.expect_good("127.0.0.2")


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_tls(tls: tuple[ssl.SSLContext, ssl.SSLContext], loop: str) -> None:
    ours, theirs = tls
    with serve(tls=ours, loop=loop) as served:
        for _ in range(30):  # the request comes with the end of the handshake
            with (
                served.connect() as sock,
                theirs.wrap_socket(sock, server_hostname="127.0.0.1") as secured,
            ):
                secured.sendall(GET_ONCE)
                answer = rest(secured)
                assert b"200 OK" in answer
                assert b"x-scheme: https" in answer
        with websockets.sync.client.connect(
            f"wss://127.0.0.1:{served.port}/ws", ssl=theirs
        ) as peer:
            peer.send("hello")
            assert peer.recv() == "hello"
        served.expect_inside(0)


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
@pytest.mark.parametrize("begun", [b"", b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_handshake_that_never_ends(
    tls: tuple[ssl.SSLContext, ssl.SSLContext], loop: str, begun: bytes
) -> None:
    ours, _ = tls
    with serve(tls=ours, loop=loop, handshake_s=SOON_S) as served:
        with served.connect() as sock:
            sock.sendall(begun)
            assert b"HTTP" not in rest(sock)
        served.expect_inside(0)


def test_handshakes_under_way_are_bounded_too(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    ours, theirs = tls
    with serve(Gate(50, 40), tls=ours) as served, contextlib.ExitStack() as held:
        connections = []
        for number in range(200):
            sock = served.connect(f"127.0.1.{1 + number % 20}")
            connections.append(held.enter_context(sock))
        served.expect_inside(50)
        expect_open(connections, 50)
        with (
            served.connect() as sock,
            theirs.wrap_socket(sock, server_hostname="127.0.0.1") as secured,
        ):
            secured.sendall(GET)
            assert b"200 OK" in secured.recv(1000)


def test_the_server_ends_while_handshakes_are_under_way(
    tls: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    with serve(tls=tls[0]) as served, served.connect():
        served.expect_inside(1)
        served.stop()


class Exhausted(socket.socket):
    """No file is left, for a while."""

    faults = 3

    def accept(self) -> tuple[socket.socket, Any]:
        if self.faults:
            self.faults -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_no_file_left_is_no_end() -> None:
    listening = Exhausted()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    with serve(listening=listening) as served:
        served.expect_good()
    assert listening.faults == 0


def test_the_second_signal_waits_for_nobody() -> None:
    server = Server(uvicorn.Config(lambda: None), Gate(10, 10))
    server.handle_exit(signal.SIGTERM, None)
    assert (server.should_exit, server.force_exit) == (True, False)
    server.handle_exit(signal.SIGTERM, None)
    assert server.force_exit
