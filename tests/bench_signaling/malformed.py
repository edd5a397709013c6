"""Offers that went wrong, by the thousand: what do signaling and transceiver say to each?

    python -m tests.bench_signaling.malformed --url http://127.0.0.1:8080/v1/realtime/calls

Calls that come of it are hung up at once. Without `--url` a transceiver and a signaling are started
for it. Prints one JSON object: counts by status and code, and whatever broke the rules: every
refusal has a code and names the thing, and nothing is a fault of the server.
"""

import argparse
import asyncio
import contextlib
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx

from tests.bench_signaling.mutants import COUNT, SEED, Mutant, mutants
from tests.lab.node import REPOSITORY

AT_ONCE = 4
SHOWN = 10  # breaches of the rules that are told in full
NAMING = re.compile(r"line \d|byte \d|`[a-z]=|m=|v=0|\d (bytes|characters)|body is empty")


@dataclass
class Book:
    """What was said to the offers."""

    answers: Counter[tuple[int, str]] = field(default_factory=Counter)
    breaches: list[str] = field(default_factory=list)
    slowest_ms: float = 0.0
    slowest: str = ""

    def note(self, mutant: Mutant, status: int, body: bytes, seconds: float) -> None:
        code, breach = judge(status, body)
        self.answers[status, code] += 1
        if breach:
            self.breaches.append(f"{mutant.name}: {status} {breach}")
        if seconds * 1e3 > self.slowest_ms:
            self.slowest_ms, self.slowest = seconds * 1e3, mutant.name

    def report(self) -> dict[str, Any]:
        return {
            "offers": self.answers.total(),
            "answers": {f"{s} {code}".strip(): n for (s, code), n in sorted(self.answers.items())},
            "server_errors": sum(n for (s, _), n in self.answers.items() if s >= 500),
            "breaches": len(self.breaches),
            "shown": self.breaches[:SHOWN],
            "slowest": {"ms": round(self.slowest_ms, 1), "offer": self.slowest},
        }


def judge(status: int, body: bytes) -> tuple[str, str]:
    """The code of an answer, and what is wrong with it."""
    if status == 201:
        return "", "" if body.startswith(b"v=0\r\n") else "the answer is no SDP"
    try:
        error = json.loads(body)["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        return "", "no error object"
    if not 400 <= status < 500:
        return code, "a fault of the server"
    return code, "" if NAMING.search(message) else f"{code}: {message!r} names nothing"


async def send(url: str, offers: Iterator[Mutant], headers: dict[str, str] | None = None) -> Book:
    """Post each offer to `url`; whatever call comes of it is hung up."""
    book = Book()
    async with httpx.AsyncClient(trust_env=False, timeout=30, headers=headers) as client:

        async def sender() -> None:
            for mutant in offers:
                began = time.monotonic()
                response = await client.post(
                    url, content=mutant.offer, headers={"Content-Type": "application/sdp"}
                )
                book.note(mutant, response.status_code, response.content, time.monotonic() - began)
                if response.status_code == 201:
                    await client.delete(urljoin(url, response.headers["location"]))

        await asyncio.gather(*(sender() for _ in range(AT_ONCE)))
    return book


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[str]:
    """A transceiver and a signaling on loopback; the URL for offers."""
    media, port = _free_port(), _free_port()
    keys = directory / "route.keys"
    keys.write_text(f"1 {random.Random(SEED).randbytes(32).hex()}\n")
    common = f'keys_file = "{keys}"\n'
    files = {
        "transceiver": f'listen = "127.0.0.1:{media}"\ninner = "plain"\ncluster = 7\nmint = 1\n'
        f"capacity = 100\nmax_lateness_ms = 10000\n{common}",
        "signaling": f'listen = "127.0.0.1:{port}"\n{common}'
        "[limits]\noffers_per_minute_per_address = 0\n"
        f'[[transceiver]]\nendpoint = "127.0.0.1:{media}"\n'
        f'[[ingress]]\nname = "here"\nvips = ["127.0.0.1:{media}"]\n'
        '[[cluster]]\nid = 7\nallow = ["127.0.0.0/8"]\n',
    }
    with contextlib.ExitStack() as stack:
        for name, text in files.items():
            file, log = (
                directory / f"{name}.toml",
                stack.enter_context((directory / f"{name}.log").open("wb")),
            )
            file.write_text(text)
            argv = [sys.executable, "-m", name, "serve", "--config", str(file)]
            program = subprocess.Popen(argv, cwd=REPOSITORY, stdout=log, stderr=log)
            stack.callback(program.wait)
            stack.callback(program.terminate)
        _wait(f"http://127.0.0.1:{port}/readyz", directory / "signaling.log")
        yield f"http://127.0.0.1:{port}/v1/realtime/calls"


def _wait(url: str, log: Path) -> None:
    for _ in range(600):
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        time.sleep(0.05)
    raise RuntimeError(f"{url} does not get ready: {log.read_text()[-500:]}")


def _free_port() -> int:
    """Free for UDP and TCP."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            number: int = tcp.getsockname()[1]
            with contextlib.suppress(OSError):
                udp.bind(("127.0.0.1", number))
                return number


def measure(count: int = COUNT, seed: int = SEED) -> dict[str, Any]:
    """The report of a transceiver and a signaling of its own, with what their logs complain of."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with serving(directory) as url:
            book = asyncio.run(send(url, mutants(count, seed)))
        logs = "".join(log.read_text() for log in directory.glob("*.log"))
    return {**book.report(), "seed": seed, "tracebacks": logs.count("Traceback")}


def main() -> None:
    parser = argparse.ArgumentParser(description="Offers that went wrong")
    parser.add_argument("--url", help="of a signaling that runs; else one is started")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    if given.url:
        book = asyncio.run(send(given.url, mutants(given.count, given.seed)))
        print(json.dumps(book.report()))
    else:
        print(json.dumps(measure(given.count, given.seed)))


if __name__ == "__main__":
    main()
