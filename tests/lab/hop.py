"""The fault hop: passes frames between two interfaces and harms them as told.

A shell around `impairment` and `nat`. It bridges `client0` and `router0` at layer 2, so neither
side sees it. Commands come over a unix socket, one JSON object a line; see `HopControl`.
"""

import argparse
import contextlib
import heapq
import json
import selectors
import socket
import struct
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

from relayctl.wire.address import Address, parse
from tests.lab import frame as frames
from tests.lab.frame import Datagram, Kind
from tests.lab.impairment import DOWN, UP, Frame, Impairment, Rule
from tests.lab.nat import NatTable

_ETH_P_ALL = 3
_SOL_PACKET, _ADD_MEMBERSHIP, _PROMISCUOUS = 263, 1, 1
_SO_RCVBUFFORCE = 33
_BATCH = 64  # frames of one interface before the other has its turn


class Hop:
    """Frames in, frames out later. `sides` are the sockets that a direction leads to."""

    def __init__(self, sides: dict[str, socket.socket], seed: int, *, nat: bool = True) -> None:
        """Without `nat` it is a line: whoever sends first is heard."""
        self._sides = sides
        self._seed = seed
        self._nat = NatTable()
        self._is_line = not nat
        self._impairment = Impairment()
        self._order = count()
        self._waiting: list[tuple[float, int, str, Kind, bytes]] = []
        self._last_rtp: dict[str, float] = {}
        self._reset()

    def receive(self, direction: str, frame: bytes, now: float) -> None:
        datagram = frames.parse(frame)
        kind = Kind.OTHER if datagram is None else datagram.kind
        client: Address | None = ("", 0)
        if datagram is not None:
            client, frame = self._translate(direction, frame, datagram)
        if client is None:
            self._count(direction, kind, "unmapped")
            return
        self._count(direction, kind, "seen")
        due = self._impairment.decide(Frame(direction, kind, client, len(frame)), now)
        if not due:
            self._count(direction, kind, "dropped")
        for at in due:
            if at <= now:
                self._send(direction, kind, frame, now)
            else:
                heapq.heappush(self._waiting, (at, next(self._order), direction, kind, frame))

    def _translate(
        self, direction: str, frame: bytes, datagram: Datagram
    ) -> tuple[Address | None, bytes]:
        """Whose frame it is (None: nobody's any more), and the frame for the other side."""
        if self._is_line:
            return datagram.source if direction == UP else datagram.destination, frame
        if direction == UP:
            client = datagram.source
            port = self._nat.outbound(client)
            if port != client[1]:
                frame = frames.with_source_port(frame, datagram, port)
            return client, frame
        found = self._nat.inbound(*datagram.destination)
        if found is not None and found != datagram.destination:
            frame = frames.with_destination_port(frame, datagram, found[1])
        return found, frame

    def release(self, now: float) -> None:
        """Send what is due."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, direction, kind, frame = heapq.heappop(self._waiting)
            self._send(direction, kind, frame, now)

    def next_due(self) -> float | None:
        return self._waiting[0][0] if self._waiting else None

    def command(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        match request["op"]:
            case "rules":
                rules = [_rule(fields) for fields in request["rules"]]
                self._impairment = Impairment(rules, self._seed)
                return {}
            case "move":
                client: Address | None = parse(request["client"]) if request["client"] else None
                return {"moved": self._nat.move(client)}
            case "counters":
                counters = self._counters(now)
                if request["reset"]:
                    self._reset()
                return counters
        raise ValueError(f"unknown op {request['op']!r}")

    def _send(self, direction: str, kind: Kind, frame: bytes, now: float) -> None:
        try:
            self._sides[direction].send(frame)
        except OSError:  # the link is down, or the frame too long: what a wire does with it
            self._count(direction, kind, "dropped")
            return
        self._count(direction, kind, "sent")
        if kind is Kind.RTP:
            before = self._last_rtp.get(direction, now)
            self._gaps[direction] = max(self._gaps.get(direction, 0.0), now - before)
            self._last_rtp[direction] = now

    def _count(self, direction: str, kind: Kind, what: str) -> None:
        self._counts[direction, kind, what] += 1

    def _reset(self) -> None:
        """A gap that lasts counts from its beginning."""
        self._counts: Counter[tuple[str, Kind, str]] = Counter()
        self._gaps = dict.fromkeys(self._last_rtp, 0.0)

    def _counters(self, now: float) -> dict[str, Any]:
        table: dict[str, Any] = {UP: {}, DOWN: {}}
        for (direction, kind, what), number in self._counts.items():
            table[direction].setdefault(kind.value, {})[what] = number
        table["rtp_gap_ms"] = {
            direction: round(1e3 * max(self._gaps[direction], now - self._last_rtp[direction]), 1)
            for direction in self._gaps
        }
        return table


def _rule(fields: dict[str, Any]) -> Rule:
    kinds = frozenset(Kind(kind) for kind in fields.pop("kinds"))
    return Rule(**fields | {"kinds": kinds, "nth": tuple(fields["nth"])})


def open_side(interface: str) -> socket.socket:
    """A raw socket that receives what arrives at `interface`, and not what we send there."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 8 << 20)
    sock.bind((interface, _ETH_P_ALL))
    membership = struct.pack("iHH8x", socket.if_nametoindex(interface), _PROMISCUOUS, 0)
    sock.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, membership)
    sock.setblocking(False)
    return sock


def serve(client: str, router: str, control: Path, seed: int, *, nat: bool) -> None:
    """Run for ever. `client` and `router` are the interfaces of the two sides."""
    sides = {UP: open_side(router), DOWN: open_side(client)}
    hop = Hop(sides, seed, nat=nat)
    with selectors.DefaultSelector() as selector, socket.socket(socket.AF_UNIX) as listener:
        selector.register(sides[DOWN], selectors.EVENT_READ, UP)  # the client's frames go up
        selector.register(sides[UP], selectors.EVENT_READ, DOWN)
        control.unlink(missing_ok=True)
        listener.bind(str(control))
        listener.listen()
        selector.register(listener, selectors.EVENT_READ, "control")
        while True:
            due = hop.next_due()
            wait = None if due is None else max(0.0, due - time.monotonic())
            for key, _ in selector.select(wait):
                if key.data in (UP, DOWN):
                    _drain(hop, key.data, key.fileobj)  # type: ignore[arg-type]
                elif key.data == "control":
                    connection, _ = listener.accept()
                    selector.register(connection, selectors.EVENT_READ, "commands")
                elif not _obey(hop, key.fileobj):  # type: ignore[arg-type]
                    selector.unregister(key.fileobj)
            hop.release(time.monotonic())


def _drain(hop: Hop, direction: str, sock: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError, OSError):
        for _ in range(_BATCH):
            hop.receive(direction, sock.recv(65536), time.monotonic())


def _obey(hop: Hop, connection: socket.socket) -> bool:
    """Answer the commands that wait on `connection`; false when it was closed."""
    data = connection.recv(65536)
    for line in data.splitlines():
        try:
            answer = {"ok": True, **hop.command(json.loads(line), time.monotonic())}
        except (ValueError, KeyError, TypeError) as error:
            answer = {"ok": False, "error": repr(error)}
        connection.sendall(json.dumps(answer).encode() + b"\n")
    if not data:
        connection.close()
    return bool(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", default="client0")
    parser.add_argument("--router", default="router0")
    parser.add_argument("--control", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--line", action="store_true", help="no NAT")
    arguments = parser.parse_args()
    nat = not arguments.line
    serve(arguments.client, arguments.router, arguments.control, arguments.seed, nat=nat)


if __name__ == "__main__":
    main()
