"""Callers that begin: first packets with authentic tokens, from sockets of the client.

No whole calls: a hundred of them at once would keep both cores busy beside a flood, and what they
need of the relay is that it answers the first. The endpoint is an echo that understands the Simple
Proxy Protocol as far as to send everything back.
"""

import heapq
import random
import secrets
import select
import socket
import threading
import time
from collections.abc import Sequence
from types import TracebackType

from relayctl.wire.address import Address
from relayctl.wire.route_token import NONCE_SIZE, Key, Route, mint
from tests.lab.hostile import binding_request
from tests.lab.node import Node
from tests.lab.service_config import CLUSTER
from tests.lab.site import Site

ECHO_PORT = 5001
RETRIES_S = (0.0, 0.05, 0.15, 0.35, 0.75)  # as browsers repeat a check
WITHIN_S = 1.0
STEADY_S = 1.0
MEDIA = b"\x80\x6f" + bytes(98)  # what an endpoint sends only to an address that it has proven

_SO_RCVBUFFORCE, _RECEIVE_BUFFER = 33, 4 << 20


class Echo:
    """An endpoint that sends back what it gets. A context manager."""

    def __init__(self, node: Node, host: str, port: int = ECHO_PORT) -> None:
        self.address: Address = (host, port)
        self._socket = node.udp(host, port, timeout_s=0.1)
        self._steady: tuple[bytes, Address] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="echo")

    def __enter__(self) -> "Echo":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._socket.close()

    def send(self, data: bytes, to: Address) -> None:
        """Something of its own accord."""
        self._socket.sendto(data, to)

    def keep_sending(self, data: bytes, to: Address) -> None:
        """The same again each second, as long as this echo lives: a flow ends when its endpoint
        falls silent."""
        self._steady = data, to

    def _run(self) -> None:
        due = 0.0
        while not self._ended.is_set():
            if self._steady is not None and time.monotonic() >= due:
                due = time.monotonic() + STEADY_S
                self.send(*self._steady)
            try:
                self.send(*self._socket.recvfrom(2048))
            except TimeoutError:
                continue


class Newcomers:
    """`count` callers, each with a socket and a token of its own. A context manager."""

    def __init__(self, site: Site, key: Key, echo: Address, count: int) -> None:
        self.vip = site.vip
        self.tokens = [token_for(key, echo) for _ in range(count)]
        source = random.Random(count)
        self.requests = [binding_request(source, token + b":abcd") for token in self.tokens]
        self.sockets = [site.client.udp(site.client_host) for _ in range(count)]
        for sock in self.sockets:  # thousands of packets, if need be
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)

    def __enter__(self) -> "Newcomers":
        return self

    def __exit__(self, *_: object) -> None:
        for sock in self.sockets:
            sock.close()

    @property
    def addresses(self) -> list[Address]:
        return [sock.getsockname() for sock in self.sockets]

    def connect(self, every_s: float = 0.02, chosen: Sequence[int] | None = None) -> list[float]:
        """Send first packets, one caller `every_s` seconds, and repeat them until they are
        answered; milliseconds of those that were within a second."""
        numbers = range(len(self.sockets)) if chosen is None else chosen
        began = time.monotonic()
        starts = {number: began + i * every_s for i, number in enumerate(numbers)}
        due = [(starts[number] + wait, number) for number in numbers for wait in RETRIES_S]
        heapq.heapify(due)
        waiting = {self.sockets[number]: number for number in numbers}
        took: dict[int, float] = {}
        while waiting and time.monotonic() < max(starts.values()) + WITHIN_S:
            while due and due[0][0] <= time.monotonic():
                _, number = heapq.heappop(due)
                if self.sockets[number] in waiting:
                    self.sockets[number].sendto(self.requests[number], self.vip)
            until = due[0][0] if due else max(starts.values()) + WITHIN_S
            for sock in select.select(list(waiting), [], [], max(0.0, until - time.monotonic()))[0]:
                if sock.recv(2048) == self.requests[waiting[sock]]:
                    number = waiting.pop(sock)
                    took[number] = time.monotonic() - starts[number]
        return [round(seconds * 1e3, 1) for seconds in took.values() if seconds <= WITHIN_S]

    def talk(self, chosen: Sequence[int] | None = None, payload: bytes = MEDIA) -> list[bool]:
        """Send one packet of media each, which makes flows confirmed; who heard it come back."""
        numbers = range(len(self.sockets)) if chosen is None else chosen
        for number in numbers:
            self.sockets[number].sendto(payload, self.vip)
        return [_hears(self.sockets[number], payload) for number in numbers]


def token_for(key: Key, endpoint: Address) -> bytes:
    """A new route token, as `endpoint` mints them."""
    host = int.from_bytes(socket.inet_aton(endpoint[0]), "big")
    route = Route(CLUSTER, host, endpoint[1], secrets.token_bytes(NONCE_SIZE))
    return mint(key, route).encode()


def _hears(sock: socket.socket, payload: bytes, patience_s: float = 1.0) -> bool:
    deadline = time.monotonic() + patience_s
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([sock], [], [], left)[0]:
            return False
        if sock.recv(2048) == payload:
            return True
    return False
