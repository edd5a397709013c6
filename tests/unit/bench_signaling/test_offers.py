import asyncio
import contextlib
from collections import Counter

import pytest

from tests.bench_signaling.offers import OFFER, Book, Generator

pytestmark = pytest.mark.anyio
CREATED = b"HTTP/1.1 201 Created\r\nContent-Length: 3\r\n\r\nv=0"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_quantiles_are_of_what_was_answered() -> None:
    book = Book()
    for n in range(100):
        book.note("201", (n + 1) / 1000)
    book.note("503", 9.0)
    report = book.report(wall_s=2.0)
    assert report["ms"] == {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}
    assert (report["offers"], report["answers_per_s"]) == (101, 50.0)


def test_no_answer_has_no_quantile() -> None:
    book = Book()
    book.note("TimeoutError", 10.0)
    assert book.report(wall_s=10.0)["ms"]["p99"] is None


async def answered(
    answers: list[bytes], count: int, impatient: int = 0
) -> tuple[Counter[str], bytes]:
    """What a generator notes of a server with these answers (b"": it hangs up), and one request."""
    requests = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            requests.append(head + await reader.readexactly(len(OFFER.read_bytes())))
            writer.write(answers.pop(0))
        except asyncio.IncompleteReadError:
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        generator = Generator(f"http://127.0.0.1:{port}/v1/realtime/calls", "sk-fl-x", impatient)
        await generator.run(1000.0, count)
    return generator.book.statuses, requests[0]


async def test_each_offer_is_noted_by_what_came_back() -> None:
    statuses, request = await answered([CREATED, BUSY, b""], 3)
    assert statuses == {"201": 1, "503": 1, "closed": 1}
    head, _, offer = request.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/realtime/calls HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Bearer sk-fl-x" in head
    assert offer == OFFER.read_bytes()


async def test_the_impatient_do_not_wait() -> None:
    statuses, _ = await answered([CREATED] * 4, 4, impatient=2)
    assert statuses == {"left": 2, "201": 2}


async def test_kept_connections_carry_one_offer_after_another_and_tell_the_clients() -> None:
    heads, connections, gone = [], 0, asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                heads.append(await reader.readuntil(b"\r\n\r\n"))
                await reader.readexactly(len(OFFER.read_bytes()))
                writer.write(CREATED)
        writer.close()
        await writer.wait_closed()
        gone.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/realtime/calls"
        generator = Generator(url, "sk-fl-x", kept=True)
        for _ in range(3):  # each as soon as the one before is answered
            await generator.run(1000.0, 1)
        for connection in generator._idle:
            assert connection.transport is not None
            connection.transport.close()
        await gone.wait()
    assert generator.book.statuses == {"201": 3}
    assert (len(heads), connections) == (3, 1)
    assert all(b"\r\nX-Forwarded-For: 127.16.0.0\r\n" in head for head in heads)
