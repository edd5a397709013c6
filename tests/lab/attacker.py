"""A node that sends what it should not, and listens for anybody who answers."""

import itertools
import select
import socket
import time
from collections.abc import Iterable
from types import TracebackType

from relayctl.wire.address import Address, render
from tests.lab.node import Node

_RECEIVE_BUFFER = 4 << 20


class Attacker:
    """UDP sockets at `host` that send in turn, and one for ICMP. A context manager."""

    def __init__(self, node: Node, host: str, sockets: int = 1) -> None:
        self._udp = [node.udp(host) for _ in range(sockets)]
        self._icmp = node.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        self._raw = node.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        for sock in (*self._udp, self._icmp):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)

    def __enter__(self) -> "Attacker":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for sock in (*self._udp, self._icmp, self._raw):
            sock.close()

    @property
    def address(self) -> Address:
        """Of the first socket."""
        host, port = self._udp[0].getsockname()
        return host, port

    def send(self, payloads: Iterable[bytes], to: Address, rate: float = 1000.0) -> int:
        """Send each payload to `to`, `rate` a second; how many."""
        sockets = itertools.cycle(self._udp)
        return _send(((next(sockets), payload) for payload in payloads), to, rate)

    def send_raw(self, packets: Iterable[bytes], to: str, rate: float = 1000.0) -> int:
        """Send IPv4 packets as they are, header and all, towards the host `to`; how many."""
        return _send(((self._raw, packet) for packet in packets), (to, 0), rate)

    def answers(self, patience_s: float = 1.0) -> list[str]:
        """Everything that came back so far and for `patience_s` more, as text."""
        found = []
        deadline = time.monotonic() + patience_s
        waiting: list[socket.socket] = [*self._udp, self._icmp]
        while (left := deadline - time.monotonic()) > 0:
            for sock in select.select(waiting, [], [], left)[0]:
                data, source = sock.recvfrom(65536)
                found.append(
                    f"ICMP {data[20]}/{data[21]} from {source[0]} about {data[28:56].hex()}"
                    if sock is self._icmp
                    else f"{data[:24].hex()} from {render(source)}"
                )
        return found


def _send(each: Iterable[tuple[socket.socket, bytes]], to: Address, rate: float) -> int:
    """Paced, and never more than a few at once after a delay of ours."""
    due, number = time.monotonic(), 0
    for number, (sock, data) in enumerate(each, 1):  # noqa: B007
        sock.sendto(data, to)
        due = max(due + 1 / rate, time.monotonic() - 0.005)
        if (ahead := due - time.monotonic()) > 0.002:
            time.sleep(ahead)
    return number
