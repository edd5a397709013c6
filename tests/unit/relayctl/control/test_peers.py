import asyncio

import pytest

from relayctl.config import PeerSection
from relayctl.control.peers import PeerHealth, PeerWatch, is_ready
from relayctl.messages import Message, PeersLive


def test_three_misses_put_a_peer_out_and_one_answer_brings_it_back() -> None:
    health = PeerHealth([2, 3])
    seen = [health.see(2, False) for _ in range(4)]
    assert (seen, health.live) == ([False, False, True, False], (3,))
    assert health.see(2, True)
    assert health.live == (2, 3)
    assert not health.see(2, False)
    assert not health.see(2, True)
    assert not health.see(2, False)
    assert health.live == (2, 3)


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\ndraining\n", False),
        (b"", False),
        (b"x" * 5000, False),
    ],
)
def test_only_a_success_is_ready(answer: bytes, wanted: bool) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async def asked() -> bool:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            return await is_ready(server.sockets[0].getsockname())

    assert asyncio.run(asked()) is wanted


def test_nobody_there_is_a_miss_and_everything_is_told() -> None:
    section = PeerSection.model_validate(
        {"id": 2, "address": "10.2.1.1", "admin": "127.0.0.1:1", "vips": []}
    )
    told: list[Message] = []
    done = asyncio.Event()

    def send(message: Message) -> bool:
        told.append(message)
        done.set()
        return True

    async def run() -> None:
        watch = PeerWatch((section,), send)
        task = asyncio.create_task(watch.run())
        await done.wait()
        task.cancel()
        assert watch.records() == [{"id": 2, "address": "10.2.1.1", "live": True}]

    asyncio.run(run())
    assert told == [PeersLive((2,))]
