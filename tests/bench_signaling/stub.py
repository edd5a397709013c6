"""A transceiver that begins no calls: what signaling asks of one is answered at once.

    python -m tests.bench_signaling.stub --listen 127.0.0.1:5000 --cluster 7 --keys FILE --mint 1

Every offer gets the same answer, under an id of its own whose token opens. It costs some 30 µs an
offer, so that it can share a core with whoever sends them. With `--redis` it registers there.
"""

import argparse
import asyncio
import json
import secrets
import socket
from pathlib import Path
from typing import cast

import httptools
import redis.asyncio
import uvloop

from relayctl.wire import address
from relayctl.wire.address import Address
from relayctl.wire.call_id import SECRET_LENGTH, CallId
from relayctl.wire.registration import EVERY_S, EXPIRES_S, Registration, key_of
from relayctl.wire.route_token import NONCE_SIZE, Key, Route, mint, parse_keys
from tests.bench_signaling.offers import OFFER
from transceiver.sdp import parse_offer
from transceiver.sdp_answer import Local, answer

CAPACITY = 1_000_000


class Stub:
    """What all connections share."""

    def __init__(self, listen: Address, cluster: int, key: Key) -> None:
        self._listen, self._cluster, self._key = listen, cluster, key
        self._host = int.from_bytes(socket.inet_aton(listen[0]), "big")
        self._offers = 0
        self._secret = secrets.token_urlsafe(SECRET_LENGTH)[:SECRET_LENGTH]
        self._answer = json.dumps(_answer())

    def create(self) -> bytes:
        """The answer to `POST /v1/calls`."""
        self._offers += 1
        nonce = (self._offers % 256**NONCE_SIZE).to_bytes(NONCE_SIZE, "big")
        token = mint(self._key, Route(self._cluster, self._host, self._listen[1], nonce))
        call_id = CallId(token, self._secret).render()
        return _reply(201, f'{{"id":"{call_id}","answer":{self._answer}}}')

    def ready(self) -> bytes:
        """The answer to `GET /readyz`."""
        return _reply(200, json.dumps({"ready": True, "calls": 0, "capacity": CAPACITY}))

    async def register(self, url: str) -> None:
        """Once a second, for ever."""
        key, value = key_of(self._listen), Registration(self._cluster, 0, CAPACITY).render()
        async with redis.asyncio.Redis.from_url(url) as client:
            while True:
                await client.set(key, value, ex=EXPIRES_S)
                await asyncio.sleep(EVERY_S)


class Connection(asyncio.Protocol):
    """HTTP/1.1 with pipelining left out: signaling does not do it."""

    def __init__(self, stub: Stub) -> None:
        self._stub = stub
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._url = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_message_complete(self) -> None:
        assert self._transport is not None
        if self._url == b"/v1/calls":
            self._transport.write(self._stub.create())
        elif self._url == b"/readyz":
            self._transport.write(self._stub.ready())
        else:
            self._transport.write(_reply(404, "{}"))


def _answer() -> str:
    """As long and as true as one of a transceiver."""
    local = Local(
        ufrag="A" * 24,
        pwd="B" * 24,
        fingerprint="sha-256 " + ":".join(["AB"] * 32),
        ssrc=1,
        cname="c" * 16,
        candidates=(("203.0.113.10", 3478),),
        session_id=1,
    )
    return answer(parse_offer(OFFER.read_text()), local)


def _reply(status: int, body: str) -> bytes:
    content = body.encode()
    return (
        f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n"
        f"content-length: {len(content)}\r\n\r\n"
    ).encode() + content


async def serve(stub: Stub, listen: Address, redis_url: str | None) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(stub), *listen)
    async with server, asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve_forever())
        if redis_url:
            tasks.create_task(stub.register(redis_url))


def main() -> None:
    parser = argparse.ArgumentParser(description="A transceiver that begins no calls")
    parser.add_argument("--listen", type=address.parse, required=True)
    parser.add_argument("--cluster", type=int, required=True)
    parser.add_argument("--keys", type=Path, required=True)
    parser.add_argument("--mint", type=int, required=True)
    parser.add_argument("--redis")
    given = parser.parse_args()
    key = parse_keys(given.keys.read_text())[given.mint]
    uvloop.run(serve(Stub(given.listen, given.cluster, key), given.listen, given.redis))


if __name__ == "__main__":
    main()
