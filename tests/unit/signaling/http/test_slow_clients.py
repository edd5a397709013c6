import contextlib
import logging
import time

import pytest
import websockets.sync.client

from signaling.faces import body
from signaling.http.gate import Gate
from signaling.http.slow_clients import MAX_HEAD
from tests.unit.signaling.real_server import BIG, GET, GET_ONCE, SOON_S, code, rest, serve

BODY = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n"


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "uvicorn.error")


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_good_requests_on_one_connection(loop: str) -> None:
    with serve(loop=loop) as served:
        assert served.answer(GET * 2 + GET_ONCE).count(b"200 OK") == 3
        served.expect_inside(0)


@pytest.mark.parametrize("begun", [b"", b"GET /good HT", GET[:-2], GET + GET[:-2]])
def test_a_head_that_takes_too_long(begun: bytes) -> None:
    with serve(head_s=SOON_S) as served:
        answer = served.answer(begun).removeprefix(b"")
        if b"200 OK" in answer:
            answer = answer[answer.index(b"good") + 4 :]
        if begun:
            assert code(answer) == (408, "request_timeout")
        else:
            assert answer == b""
        served.expect_inside(0)


def test_a_head_that_comes_byte_by_byte() -> None:
    with serve(head_s=SOON_S) as served, served.connect() as sock:
        with contextlib.suppress(ConnectionError):
            for byte in b"GET /good HTTP/1.1\r\nX: " + b"y" * 1000:
                sock.sendall(bytes([byte]))
                time.sleep(SOON_S / 20)
        served.expect_inside(0)


@pytest.mark.parametrize(
    "head", [b"GET /good?", b"GET /good HTTP/1.1\r\nX: ", b"GET /good HTTP/1.1\r\n"]
)
def test_a_head_that_is_too_long(head: bytes) -> None:
    line = b"x: y\r\n" if head.endswith(b"\n") else b"yyyyyy"
    with serve() as served, served.connect() as sock:
        answer = b""
        with contextlib.suppress(ConnectionError):
            sock.sendall(head)
            time.sleep(0.05)
            for _ in range(1 + MAX_HEAD // 6 // 100 + 1000):
                sock.sendall(line * 100)
                time.sleep(0.0005)
        answer = rest(sock)
        assert not answer or code(answer) == (431, "head_too_large")
        served.expect_inside(0)


def test_a_body_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "TIME_S", SOON_S)
    with serve() as served:
        assert code(served.answer(BODY + b"abc")) == (408, "request_timeout")
        assert b"connection: close" in served.answer(BODY).lower()
        served.expect_inside(0)


def test_a_body_that_nobody_reads_ends_with_its_answer() -> None:
    with serve(head_s=SOON_S) as served:
        answer = served.answer(GET.replace(b"Host", b"Content-Length: 99\r\nHost") + b"abc")
        assert b"200 OK" in answer
        served.expect_inside(0)


def test_no_http() -> None:
    with serve() as served:
        assert code(served.answer(b"\x16\x03\x01" + bytes(40))) == (400, "bad_request")
        served.expect_inside(0)


def test_an_answer_that_is_not_read() -> None:
    with serve(stall_s=SOON_S) as served, served.connect() as sock:
        sock.sendall(GET.replace(b"good", b"big"))
        served.expect_inside(1)
        served.expect_inside(0)
        assert len(rest(sock)) < BIG


def test_the_end_of_an_answer_that_is_not_read() -> None:
    """It lies in the send buffer, and the server has long closed."""
    with serve(head_s=SOON_S) as served, served.connect() as sock:
        sock.sendall(GET_ONCE.replace(b"good", b"big"))
        served.expect_inside(1)
        served.expect_inside(0)


def test_websockets_are_counted_and_may_be_silent() -> None:
    with serve(Gate(10, 2), head_s=SOON_S) as served:
        with websockets.sync.client.connect(f"ws://127.0.0.1:{served.port}/ws") as peer:
            time.sleep(2 * SOON_S)
            peer.send("hello")
            assert peer.recv() == "hello"
            served.expect_inside(1)
        served.expect_inside(0)


def test_a_websocket_that_is_not_read() -> None:
    key = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    key += b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    with serve(stall_s=SOON_S) as served, served.connect() as sock:
        sock.sendall(GET.replace(b"good", b"ws").replace(b"Host", key + b"Host"))
        assert b"101" in sock.recv(1000)
        sock.sendall(b"\x81\x81\0\0\0\0.")
        served.expect_inside(1)
        served.expect_inside(0)
