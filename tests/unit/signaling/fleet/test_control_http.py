import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from relayctl.wire.address import Address
from signaling.fleet.control_http import KEPT_S, MAX_REPLY, ControlHttp, NoReply, Reply

pytestmark = pytest.mark.anyio
PATIENCE_S = 20.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HEAD = b"HTTP/1.1 200 OK\r\n"


@dataclass
class Server:
    """Answers each request with the next of `answers`; None: with silence. b"" closes."""

    answers: list[bytes | None]
    requests: list[bytes] = field(default_factory=list)
    connections: list[asyncio.StreamWriter] = field(default_factory=list)
    endpoint: Address = ("127.0.0.1", 0)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                self.requests.append(head + await reader.readexactly(int(length or 0)))
                self.asked.set()
                answer = self.answers.pop(0)
                if answer is None:
                    continue
                if not answer:
                    break
                writer.write(answer)
        writer.close()


@contextlib.asynccontextmanager
async def serving(*answers: bytes | None) -> AsyncIterator[Server]:
    server = Server(list(answers))
    listening = await asyncio.start_server(server.serve, *server.endpoint)
    server.endpoint = listening.sockets[0].getsockname()
    try:
        yield server
    finally:
        for writer in server.connections:
            writer.close()
        listening.close()


async def ask(
    http: ControlHttp, server: Server, method: str = "GET", content: bytes = b"", **headers: str
) -> Reply:
    return await http.ask(
        *(method, server.endpoint, "/readyz"),
        headers=headers,
        content=content,
        timeout_s=PATIENCE_S,
    )


async def turns() -> None:
    """Until what was sent on loopback has been read."""
    for _ in range(5):
        await asyncio.sleep(0.01)


async def test_what_goes_out_and_what_comes_back() -> None:
    answer = b"HTTP/1.1 201 Created\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}"
    async with serving(answer) as server:
        http = ControlHttp()
        reply = await ask(http, server, "POST", b'{"a": 1}', Authorization="Bearer t")
        http.close()
    assert reply == Reply(201, {"retry-after": "7", "content-length": "2"}, b"{}")
    host, port = server.endpoint
    lines = [b"POST /readyz HTTP/1.1", f"Host: {host}:{port}".encode()]
    lines += [b"Authorization: Bearer t", b"Content-Length: 8", b"", b'{"a": 1}']
    assert server.requests == [b"\r\n".join(lines)]


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", b"abc"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" + OK, b"ok"),
    ],
)
async def test_answers_end_as_http_says(answer: bytes, content: bytes) -> None:
    async with serving(answer, OK) as server:
        http = ControlHttp()
        assert (await ask(http, server)).content == content
        assert (await ask(http, server)).content == b"ok"
        http.close()
    assert len(server.connections) == 1


async def test_two_at_once_have_a_connection_each_and_later_ones_use_them_again() -> None:
    async with serving(*[OK] * 6) as server:
        http = ControlHttp()
        for _ in range(3):
            await asyncio.gather(ask(http, server), ask(http, server))
        http.close()
    assert len(server.requests) == 6
    assert len(server.connections) == 2


async def test_no_more_connections_than_allowed() -> None:
    async with serving(*[OK] * 6) as server:
        http = ControlHttp(connections=2)
        await asyncio.gather(*(ask(http, server) for _ in range(6)))
        http.close()
    assert len(server.connections) == 2


async def test_one_that_hangs_does_not_hold_up_the_others() -> None:
    async with serving(None, None) as hung, serving(OK) as server:
        http = ControlHttp(connections=2)
        asking = [asyncio.create_task(ask(http, hung)) for _ in range(4)]
        await hung.asked.wait()
        assert (await ask(http, server)).content == b"ok"
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        assert list(http._ways) == [server.endpoint]
        http.close()


async def test_a_connection_that_was_idle_for_long_is_not_used_again() -> None:
    now = 100.0
    async with serving(OK, OK, OK) as server:
        http = ControlHttp(lambda: now)
        await ask(http, server)
        now += KEPT_S - 0.1
        await ask(http, server)
        assert len(server.connections) == 1
        now += KEPT_S + 0.1
        await ask(http, server)
        http.close()
    assert len(server.connections) == 2


async def test_what_the_other_side_closed_is_forgotten() -> None:
    async with serving(OK, OK) as server:
        http = ControlHttp()
        await ask(http, server)
        server.connections[0].close()
        await turns()
        assert not http._ways
        await ask(http, server)
        http.close()
        await turns()
        assert not http._ways
    assert len(server.connections) == 2


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nok",
        OK + OK,  # the second would be the answer to the next request
    ],
)
async def test_a_connection_that_cannot_go_on_is_closed(answer: bytes) -> None:
    async with serving(answer, HEAD + b"Content-Length: 4\r\n\r\nnext") as server:
        http = ControlHttp()
        assert (await ask(http, server)).content == b"ok"
        assert (await ask(http, server)).content == b"next"
        http.close()
    assert len(server.connections) == 2


@pytest.mark.parametrize("noticed", [True, False])
async def test_an_answer_that_nobody_asked_for_ends_the_connection(noticed: bool) -> None:
    async with serving(OK, HEAD + b"Content-Length: 4\r\n\r\nnext") as server:
        http = ControlHttp()
        await ask(http, server)
        if noticed:
            server.connections[0].write(OK)
            await turns()
        else:  # its end has not been told yet
            next(iter(http._ways[server.endpoint].idle)).data_received(OK)
        assert (await ask(http, server)).content == b"next"
        http.close()
    assert len(server.connections) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
        HEAD + b"A: " + b"b" * MAX_REPLY + b"\r\n\r\n",
        HEAD + f"Content-Length: {MAX_REPLY}\r\n\r\n".encode() + bytes(MAX_REPLY),
    ],
)
async def test_no_answer_and_no_good_one(answer: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(answer, OK) as server:
        http = ControlHttp()
        with pytest.raises(NoReply, match="ConnectionError"):
            await ask(http, server)
        assert (await ask(http, server)).content == b"ok"
        http.close()
    assert len(server.connections) == 2
    assert not caplog.records


async def test_half_an_answer_is_none() -> None:
    async with serving(HEAD + b"Content-Length: 4\r\n\r\nha") as server:
        http = ControlHttp()
        asking = asyncio.create_task(ask(http, server))
        await server.asked.wait()
        await turns()
        server.connections[0].close()
        with pytest.raises(NoReply):
            await asking


async def test_silence_is_no_reply_and_its_connection_is_not_used_again() -> None:
    async with serving(None, OK) as server:
        http = ControlHttp()
        with pytest.raises(NoReply, match="TimeoutError"):
            await http.ask("GET", server.endpoint, "/", headers={}, content=b"", timeout_s=0.05)
        await ask(http, server)
        http.close()
    assert len(server.connections) == 2


@pytest.mark.parametrize("anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})])
async def test_an_answer_that_came_while_we_were_busy_is_in_time(anyio_backend: object) -> None:
    timeout_s = 0.1
    listening = socket.create_server(("127.0.0.1", 0))
    http = ControlHttp()
    endpoint = listening.getsockname()
    asking = asyncio.create_task(
        http.ask("GET", endpoint, "/", headers={}, content=b"", timeout_s=timeout_s)
    )
    peer, _ = await asyncio.to_thread(listening.accept)
    with listening, peer:
        await asyncio.to_thread(peer.recv, 1024)
        peer.sendall(OK)
        time.sleep(3 * timeout_s)  # noqa: ASYNC251  # nothing else has its turn meanwhile
        assert (await asking).content == b"ok"
        http.close()


async def test_whoever_waits_for_a_connection_waits_as_long_only() -> None:
    async with serving(None) as server:
        http = ControlHttp(connections=1)
        first = asyncio.create_task(ask(http, server))
        await server.asked.wait()
        with pytest.raises(NoReply, match="TimeoutError"):
            await http.ask("GET", server.endpoint, "/", headers={}, content=b"", timeout_s=0.05)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert not http._ways
        http.close()


async def test_whoever_gives_up_leaves_no_answer_to_the_next() -> None:
    async with serving(None, OK) as server:
        http = ControlHttp()
        asking = asyncio.create_task(ask(http, server))
        await server.asked.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert not http._ways
        assert (await ask(http, server)).content == b"ok"
        http.close()
    assert len(server.connections) == 2


async def test_nobody_listens() -> None:
    async with serving() as server:
        pass
    http = ControlHttp()
    with pytest.raises(NoReply, match="ConnectionRefusedError"):
        await ask(http, server)
    assert not http._ways


async def test_the_length_is_that_of_one_reply() -> None:
    size = MAX_REPLY * 2 // 3
    long = HEAD + f"Content-Length: {size}\r\n\r\n".encode() + bytes(size)
    async with serving(long, long) as server:
        http = ControlHttp()
        for _ in range(2):
            assert len((await ask(http, server)).content) == size
        http.close()
    assert len(server.connections) == 1
