import asyncio
import contextlib
import logging
import time
from typing import cast

import pytest
import websockets.sync.client
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from signaling.faces import body
from signaling.http.gate import Gate
from signaling.http.slow_clients import LONG_READ, MAX_HEAD, Turns
from tests.unit.signaling.real_server import BIG, GET, GET_ONCE, SOON_S, code, rest, serve

BODY = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n"


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "uvicorn.error")


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_good_requests_on_one_connection(loop: str) -> None:
    with serve(loop=loop) as served:
        answer = served.answer(GET * 2 + GET_ONCE)
        assert (answer.count(b"200 OK"), answer.count(b"x-heard: True")) == (3, 3)
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


def test_empty_pieces_of_a_message_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[bytes] = []

    def keep(protocol: WebSocketsSansIOProtocol, piece: Frame) -> None:
        kept.append(bytes(piece.data))
        join(protocol, piece)

    join = WebSocketsSansIOProtocol.handle_cont
    monkeypatch.setattr(WebSocketsSansIOProtocol, "handle_cont", keep)
    with (
        serve() as served,
        websockets.sync.client.connect(f"ws://127.0.0.1:{served.port}/ws") as peer,
    ):
        peer.send(["a", "", "", "b", ""])
        assert peer.recv() == "ab"
    assert kept == [b"b", b""]


def test_trailers_are_no_headers() -> None:
    """A proxy does not look at them, so nothing that it has to take away may come that way."""
    head = GET_ONCE.replace(b"GET /good", b"POST /seen").removesuffix(b"\r\n")
    chunked = b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
    with serve() as served:
        answer = served.answer(head + chunked)
    assert b"200 OK" in answer
    assert b"x-forwarded-for" not in answer


class Read:
    """A transport that is read, or not."""

    def __init__(self) -> None:
        self.reads = True
        self.closing = False

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True


@pytest.mark.parametrize("fate", ["others had their turn", "uvicorn wants no more", "it closed"])
def test_a_long_read_is_followed_by_a_turn_of_the_others(fate: str) -> None:
    loop, transport, paused = asyncio.new_event_loop(), Read(), False
    turns = Turns(loop, cast(asyncio.Transport, transport), lambda: paused)
    turns.after(LONG_READ - 1)
    assert transport.reads
    turns.after(LONG_READ)
    assert not transport.reads
    paused, transport.closing = fate == "uvicorn wants no more", fate == "it closed"
    loop.run_until_complete(asyncio.sleep(0))
    assert transport.reads == (fate == "others had their turn")
    loop.close()


def test_what_uvicorn_paused_stays_so() -> None:
    loop, transport = asyncio.new_event_loop(), Read()
    Turns(loop, cast(asyncio.Transport, transport), lambda: True).after(LONG_READ)
    assert transport.reads  # as we found it
    loop.close()


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_a_long_body_arrives_whole(loop: str) -> None:
    sent = GET_ONCE.replace(b"GET /good", b"POST /seen").removesuffix(b"\r\n")
    body = b"y" * 300_000
    with serve(loop=loop) as served:
        answer = served.answer(sent + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert b"200 OK" in answer
