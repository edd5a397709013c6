"""Lets devices of the local network reach a VIP inside the lab: forwards UDP, client by client.

It stands where a cloud's 1:1 NAT stands in production; the relay sees one port of ours per client.
Without root there is no other way to have both `HOST` and 127.0.0.1.
"""

import argparse
import contextlib
import selectors
import socket
import time

from relayctl.wire.address import Address, parse

_IDLE_S = 60.0
_BATCH = 64


class Gate:
    def __init__(self, front: socket.socket, target: Address) -> None:
        self._front = front
        self._target = target
        self._selector = selectors.DefaultSelector()
        self._selector.register(front, selectors.EVENT_READ)
        self._backs: dict[Address, socket.socket] = {}
        self._seen: dict[Address, float] = {}

    def run(self) -> None:
        """For ever."""
        swept = time.monotonic()
        while True:
            for key, _ in self._selector.select(_IDLE_S):
                if key.data is None:
                    self._drain_front()
                else:
                    self._drain_back(key.fileobj, key.data)  # type: ignore[arg-type]
            if time.monotonic() - swept > _IDLE_S:
                swept = time.monotonic()
                self._forget_idle(swept)

    def _drain_front(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(_BATCH):
                data, client = self._front.recvfrom(65536)
                self._seen[client] = time.monotonic()
                with contextlib.suppress(OSError):
                    self._back(client).send(data)

    def _drain_back(self, back: socket.socket, client: Address) -> None:
        with contextlib.suppress(OSError):  # nothing more, or the far port is closed
            for _ in range(_BATCH):
                self._front.sendto(back.recv(65536), client)

    def _back(self, client: Address) -> socket.socket:
        if client not in self._backs:
            back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            back.setblocking(False)
            back.connect(self._target)
            self._selector.register(back, selectors.EVENT_READ, client)
            self._backs[client] = back
        return self._backs[client]

    def _forget_idle(self, now: float) -> None:
        for client in [c for c, seen in self._seen.items() if now - seen > _IDLE_S]:
            del self._seen[client]
            if back := self._backs.pop(client, None):
                self._selector.unregister(back)
                back.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="UDP gate")
    parser.add_argument("--fd", type=int, required=True, help="a bound UDP socket")
    parser.add_argument("--target", type=parse, required=True, help="<ip>:<port>")
    arguments = parser.parse_args()
    front = socket.socket(fileno=arguments.fd)
    front.setblocking(False)
    Gate(front, arguments.target).run()


if __name__ == "__main__":
    main()
