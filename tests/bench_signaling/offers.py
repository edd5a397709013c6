"""Send offers at an even rate, whatever comes back and whenever, and say how long each took.

    python -m tests.bench_signaling.offers --url http://127.0.0.1:8080/v1/realtime/calls --rate 500

Each offer is a client of its own: its own address out of 127.16.0.0/12, its own connection, closed
after the answer. With `--kept` they come as through a balancer that ends their TLS: over the
connections that it keeps, the client's address in `X-Forwarded-For`. Time counts from the moment at
which an offer was due, so one that waits for signaling to accept its connection waits on the
record. Prints one JSON object.
"""

import argparse
import asyncio
import ipaddress
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import httptools
import uvloop

from tests.lab.node import REPOSITORY

OFFER = REPOSITORY / "tests/vectors/sdp/chromium-no-candidates.sdp"
CLIENTS = ipaddress.ip_network("127.16.0.0/12")
PATIENCE_S = 10.0  # for one answer


@dataclass
class Book:
    """What became of the offers."""

    statuses: Counter[str] = field(default_factory=Counter)
    took_s: list[float] = field(default_factory=list)  # of those that were answered 201

    def note(self, status: str, seconds: float) -> None:
        self.statuses[status] += 1
        if status == "201":
            self.took_s.append(seconds)

    def report(self, wall_s: float) -> dict[str, Any]:
        took_ms = sorted(1e3 * each for each in self.took_s)
        return {
            "statuses": dict(self.statuses),
            "offers": self.statuses.total(),
            "wall_s": round(wall_s, 3),
            "answers_per_s": round(len(took_ms) / wall_s, 1),
            "ms": {name: _quantile(took_ms, q) for name, q in QUANTILES.items()},
            "cpu_s": round(sum(os.times()[:2]), 3),
        }


QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


def _quantile(ordered: list[float], q: float) -> float | None:
    """Nearest rank; None of nothing."""
    if not ordered:
        return None
    return round(ordered[max(0, -int(-q * len(ordered) // 1) - 1)], 2)


class Connection(asyncio.Protocol):
    """One request at a time, and the status of its answer."""

    def __init__(self, lost: "Callable[[Connection], None]") -> None:
        self._lost = lost
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[str] | None = None
        self.transport: asyncio.Transport | None = None

    def ask(self, request: bytes) -> asyncio.Future[str]:
        """ "closed" if that is all that comes."""
        assert self.transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._tell(str(self._parser.get_status_code()))

    def connection_lost(self, error: Exception | None) -> None:
        self._tell("closed")
        self._lost(self)

    def _tell(self, status: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(status)


class Generator:
    """`impatient`: every n-th client leaves once its offer is out; 0: none does. `kept`: over
    connections of a balancer."""

    def __init__(
        self, url: str, key: str | None, impatient: int = 0, *, kept: bool = False
    ) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self._to = parts.hostname, parts.port
        offer = OFFER.read_bytes()
        head = [f"POST {parts.path} HTTP/1.1", f"Host: {parts.netloc}"]
        head += ["Content-Type: application/sdp", f"Content-Length: {len(offer)}"]
        head += ["Origin: https://example.com", "User-Agent: Mozilla/5.0", "Accept: */*"]
        head += [f"Authorization: Bearer {key}"] if key else []
        self._head, self._offer = "\r\n".join([*head, ""]).encode(), offer
        self._impatient = impatient
        self._kept = kept
        self._idle: dict[Connection, None] = {}  # the last used at the end
        self.book = Book()

    async def run(self, rate: float, count: int) -> dict[str, Any]:
        """`count` offers, `rate` a second."""
        loop = asyncio.get_running_loop()
        began = time.monotonic()
        under_way: set[asyncio.Task[None]] = set()
        for number in range(count):
            due = began + number / rate
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            elif number % 16 == 0:
                await asyncio.sleep(0)  # behind: answers want to be read too
            task = loop.create_task(self._send(number, due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        await asyncio.gather(*under_way)
        return self.book.report(time.monotonic() - began)

    async def _send(self, number: int, due: float) -> None:
        client = str(CLIENTS[number % CLIENTS.num_addresses])
        told = f"X-Forwarded-For: {client}\r\n" if self._kept else ""
        request = self._head + f"{told}\r\n".encode() + self._offer
        connection = None
        try:
            async with asyncio.timeout(PATIENCE_S):
                connection = await self._connect(client)
                answer = connection.ask(request)
                leaves = self._impatient and number % self._impatient == 0
                status = "left" if leaves else await answer
        except (TimeoutError, OSError) as error:
            status = type(error).__name__
        self.book.note(status, time.monotonic() - due)
        if connection is not None:
            self._leave(connection, keep=self._kept and status.isdecimal())

    async def _connect(self, client: str) -> Connection:
        if self._idle:
            return self._idle.popitem()[0]
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(lambda lost: self._idle.pop(lost, None)),
            *self._to,
            local_addr=None if self._kept else (client, 0),
        )
        return connection

    def _leave(self, connection: Connection, *, keep: bool) -> None:
        assert connection.transport is not None
        if keep and not connection.transport.is_closing():
            self._idle[connection] = None
        else:
            connection.transport.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Offers at an even rate")
    parser.add_argument("--url", required=True)
    parser.add_argument("--rate", type=float, required=True, help="offers a second")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--key-file", type=Path, help="has the API key to send")
    parser.add_argument("--impatient", type=int, default=0, metavar="N", help="every Nth leaves")
    parser.add_argument("--kept", action="store_true", help="over a balancer's connections")
    given = parser.parse_args()
    key = given.key_file.read_text().strip() if given.key_file else None
    generator = Generator(given.url, key, given.impatient, kept=given.kept)
    print(json.dumps(uvloop.run(generator.run(given.rate, round(given.rate * given.seconds)))))


if __name__ == "__main__":
    main()
