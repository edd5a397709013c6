"""Reads datagrams many at a time: recvmmsg(2), which Python does not have.

Buffers are made once and used by every socket in turn. Not here: sockets (`sockets`), and what a
datagram means (`decide`).
"""

import ctypes
import mmap
import socket
import struct
from typing import NamedTuple

BATCH = 64  # datagrams in one call
SO_TIMESTAMPNS = 35  # linux/asm-generic/socket.h: the option that gives the time of arrival

_recvmmsg = ctypes.CDLL(None).recvmmsg

_MAX_DATAGRAM = 65536
_SLOT = _MAX_DATAGRAM + 320  # at multiples of a power of two all would share a few lines of cache

_VECTOR = struct.Struct("@PN")  # struct iovec
_MESSAGE = struct.Struct("@PIPNPNi0PI0P")  # struct mmsghdr: msghdr, then what was received
_SIZE = struct.Struct(f"{_MESSAGE.size - 8}xI4x")  # that alone

_NAME_SIZE = 28  # of struct sockaddr_in6, the larger
_SENDERS = {  # port, address
    False: struct.Struct("2x2s4s20x"),
    True: struct.Struct("2x2s4x16s4x"),
}

_CONTROL_SIZE = socket.CMSG_SPACE(16) + socket.CMSG_SPACE(20)
_CONTROLS = {  # struct timespec, then struct in_pktinfo or in6_pktinfo: the kernel keeps this order
    False: struct.Struct(f"16xqq16xI{_CONTROL_SIZE - 52}x"),
    True: struct.Struct(f"16xqq32xI{_CONTROL_SIZE - 68}x"),
}


class Datagram(NamedTuple):
    """`sender` is a packed address; `received_at` is CLOCK_REALTIME in ns; `interface` is an index,
    0 where nobody asked for it."""

    payload: bytes
    sender: bytes
    received_at: int
    interface: int


class Inbox:
    """Room for a batch."""

    def __init__(self) -> None:
        self._payloads = memoryview(mmap.mmap(-1, BATCH * _SLOT))  # takes only what is touched
        self._names = bytearray(BATCH * _NAME_SIZE)
        self._controls = bytearray(BATCH * _CONTROL_SIZE)
        self._vectors = bytearray()
        for at in range(BATCH):
            self._vectors += _VECTOR.pack(_place(self._payloads, at * _SLOT), _MAX_DATAGRAM)
        self._empty = b"".join(
            _MESSAGE.pack(
                *(_place(self._names, at * _NAME_SIZE), _NAME_SIZE),
                *(_place(self._vectors, at * _VECTOR.size), 1),
                *(_place(self._controls, at * _CONTROL_SIZE), _CONTROL_SIZE),
                *(0, 0),
            )
            for at in range(BATCH)
        )
        self._messages = bytearray(self._empty)
        self._arguments = ctypes.c_void_p(_place(self._messages)), BATCH, 0, None

    def receive(self, fd: int, *, v6: bool, interfaces: bool) -> list[Datagram]:
        """What waits in a socket that has `SO_TIMESTAMPNS` set; a batch at most."""
        self._messages[:] = self._empty
        count = _recvmmsg(fd, *self._arguments)
        found = zip(
            range(0, count * _SLOT, _SLOT),
            _SIZE.iter_unpack(self._messages),
            _SENDERS[v6].iter_unpack(self._names),
            _CONTROLS[v6].iter_unpack(self._controls),
            strict=False,
        )
        return [
            Datagram(
                bytes(self._payloads[at : at + size]),
                host + port,
                seconds * 1_000_000_000 + nanoseconds,
                interface if interfaces else 0,
            )
            for at, (size,), (port, host), (seconds, nanoseconds, interface) in found
        ]


def _place(buffer: bytearray | memoryview, offset: int = 0) -> int:
    """Where in memory."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer, offset))
