"""How long the transceiver thinks: from a packet that wants an answer to the first of the answer.

Read off the transceiver's interface, by the kernel's time stamps; nothing in the product takes
part. A check is answered by the response of the same transaction, a ClientHello by the first DTLS
datagram that goes to the same client.
"""

import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from relayctl.wire import spp
from tests.lab import frame
from tests.lab.frame import Kind
from tests.lab.node import Node

_SO_TIMESTAMPNS = 35  # asm-generic/socket.h; the ancillary message has the same number
_TIMESPEC = struct.Struct("@ll")
_REQUEST, _SUCCESS = b"\x00\x01", b"\x01\x01"  # Binding, RFC 8489 section 5
_HANDSHAKE, _CLIENT_HELLO = 22, 1
_RECORD_HEADER = 13  # bytes, RFC 6347 section 4.1
_TICK_S = 0.2


@dataclass
class Share:
    """Milliseconds, one figure for each that was answered."""

    check_ms: list[float] = field(default_factory=list)
    flight_ms: list[float] = field(default_factory=list)
    _waiting: dict[bytes, float] = field(default_factory=dict)

    def see(self, payload: bytes, incoming: bool, now: float) -> None:
        """A frame's UDP payload as it is on the inner network; `now` in seconds."""
        try:
            header, inner = spp.split(payload)
        except spp.SppError:
            return
        for key, is_question, took in _roles(header, inner, self):
            if incoming and is_question:
                self._waiting.setdefault(key, now)
            elif not incoming and not is_question and key in self._waiting:
                took.append((now - self._waiting.pop(key)) * 1e3)


def _roles(header: bytes, inner: bytes, share: Share) -> Iterator[tuple[bytes, bool, list[float]]]:
    """What a packet can be: the key of its exchange, whether it opens it, where it is noted."""
    if inner[:2] in (_REQUEST, _SUCCESS):
        yield b"stun" + inner[8:20], inner[:2] == _REQUEST, share.check_ms
    elif inner[:1] == bytes([_HANDSHAKE]) and len(inner) > _RECORD_HEADER:
        yield b"dtls" + header, inner[_RECORD_HEADER] == _CLIENT_HELLO, share.flight_ms


class Watch:
    """Looks on from its making until `close`; `share` is what it saw. A context manager."""

    def __init__(self, node: Node, interface: str) -> None:
        self.share = Share()
        self._socket = node.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self._socket.bind((interface, 0))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._socket.settimeout(_TICK_S)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()

    def _look(self) -> None:
        while not self._over.is_set():
            try:
                data, extra, _, address = self._socket.recvmsg(2048, 64)
            except TimeoutError:
                continue
            datagram = frame.parse(data)
            if datagram is None or datagram.kind is Kind.OTHER:
                continue
            stamps = [told for level, kind, told in extra if kind == _SO_TIMESTAMPNS]
            seconds, nanoseconds = _TIMESPEC.unpack(stamps[0])
            incoming = address[2] != socket.PACKET_OUTGOING
            self.share.see(datagram.payload, incoming, seconds + nanoseconds / 1e9)
