"""Every RTP packet of every call at both of its ends, with the kernel's time.

Raw sockets on the interfaces of client and transceivers. RTP headers are not encrypted, and the
relay changes none: a packet is known at both ends by its source and its number, whoever sends it
and whatever becomes of addresses on the way.
"""

import contextlib
import selectors
import socket
import struct
import threading
import time
from array import array
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relayctl.wire import spp
from tests.lab.node import Node

End = Literal["client", "transceiver"]

_SO_TIMESTAMPNS = 35
_SO_RCVBUFFORCE = 33
_TIMESPEC = struct.Struct("@qq")
_OUTGOING = 4  # PACKET_OUTGOING
_HEAD = 96  # bytes: Ethernet, IPv4, UDP, SPP and RTP headers
_UDP = 34
_PAYLOAD = 42
_BATCH = 64
_LATE_S = 5.0  # a packet that waited longer says that the wall clock was stepped


class Key(NamedTuple):
    """Packets of one source that leave (`sent`) or reach one of the ends."""

    end: End
    sent: bool
    ssrc: int


@dataclass
class _Series:
    times: "array[float]" = field(default_factory=lambda: array("d"))
    numbers: "array[int]" = field(default_factory=lambda: array("H"))


@dataclass(frozen=True)
class Seen:
    """Times (`time.monotonic()`, s) and RTP sequence numbers (16 bits), in order of arrival."""

    times: NDArray[np.float64]
    numbers: NDArray[np.uint16]


class Tap:
    """A context manager: listens in a thread of its own from entry to exit."""

    def __init__(self, client: Node, transceivers: list[Node], interface: str = "eth0") -> None:
        self._series: dict[Key, _Series] = {}
        self._ports: dict[Key, int] = {}  # of the client, when the stream was seen first
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._listen(client, interface, "client")
        for node in transceivers:
            self._listen(node, interface, "transceiver")
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tap")

    def __enter__(self) -> "Tap":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def forget(self) -> None:
        """Begin anew."""
        with self._lock:
            self._series.clear()
            self._ports.clear()

    def seen(self, end: End, sent: bool, ssrc: int) -> Seen:
        with self._lock:
            found = self._series.get(Key(end, sent, ssrc), _Series())
            times, numbers = np.array(found.times, np.float64), np.array(found.numbers, np.uint16)
        order = np.argsort(times, kind="stable")
        return Seen(times[order], numbers[order])

    def pairs(self) -> dict[int, int]:
        """Source of the caller: source of what comes back to the same socket."""
        with self._lock:
            down = {port: key.ssrc for key, port in self._ports.items() if not key.sent}
            up = {key.ssrc: port for key, port in self._ports.items() if key.sent}
        return {ssrc: down[port] for ssrc, port in up.items() if port in down}

    def _listen(self, node: Node, interface: str, end: End) -> None:
        sock = node.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 32 << 20)
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        sock.bind((interface, 0))
        sock.setblocking(False)
        self._selector.register(sock, selectors.EVENT_READ, end)

    def _run(self) -> None:
        while not self._ending.is_set():
            for key, _ in self._selector.select(0.1):
                with contextlib.suppress(OSError):  # also a link that goes down
                    for _ in range(_BATCH):
                        self._read(key.fileobj, key.data)  # type: ignore[arg-type]

    def _read(self, sock: socket.socket, end: End) -> None:
        frame, ancillary, _, address = sock.recvmsg(_HEAD, 64)
        if frame[12:14] != b"\x08\x00" or frame[23] != 17 or len(frame) < _PAYLOAD + 12:
            return
        at = _PAYLOAD
        if frame[at : at + 2] == spp.MAGIC:
            at += spp.HEADER_SIZE
        if len(frame) < at + 12 or frame[at] >> 6 != 2 or 192 <= frame[at + 1] < 224:
            return
        sent = address[2] == _OUTGOING
        key = Key(end, sent, int.from_bytes(frame[at + 8 : at + 12], "big"))
        moment = _monotonic(ancillary)
        with self._lock:
            series = self._series.get(key)
            if series is None:
                series = self._series[key] = _Series()
                if end == "client":
                    port = _UDP if sent else _UDP + 2
                    self._ports[key] = int.from_bytes(frame[port : port + 2], "big")
            series.times.append(moment)
            series.numbers.append(int.from_bytes(frame[at + 2 : at + 4], "big"))


def _monotonic(ancillary: list[tuple[int, int, bytes]]) -> float:
    """The kernel's stamp is of the wall clock, which may be stepped: only its distance counts."""
    now = time.monotonic()
    for _, kind, data in ancillary:
        if kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = _TIMESPEC.unpack(data)
            waited: float = time.time() - seconds - nanoseconds * 1e-9
            if 0 <= waited < _LATE_S:
                return now - waited
    return now
