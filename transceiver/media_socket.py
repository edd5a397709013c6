"""The UDP socket of a process's calls: large buffers, and the kernel's stamp on each datagram."""

import socket
import struct
import time

from relayctl.wire.address import Address

RECEIVE_BUFFER = 4 << 20  # bytes: 30 calls' packets of about half a minute
LONGEST_WAIT_S = 60.0  # that a stamp can tell of: then the buffer would have been full long before
SEND_BUFFER = 1 << 20  # bytes, as the kernel counts them: all calls' packets of one turn

_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33  # Linux; the socket module has no names for them
_SO_TIMESTAMPNS = 35  # Linux; also the type of the ancillary message
_TIMESPEC = struct.Struct("@ll")

STAMP_SPACE = socket.CMSG_SPACE(_TIMESPEC.size)  # bytes of ancillary data to ask for


def waited(ancillary: list[tuple[int, int, bytes]]) -> float:
    """Seconds since the kernel took a datagram in, by its stamp; 0 without one.

    The stamp is of the wall clock. What lay in the socket while that was stepped seems to come from
    the future, or to have waited for longer than the buffer lasts: 0 too.
    """
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = _TIMESPEC.unpack(data)
            came: float = seconds + nanoseconds / 1e9
            since = time.time() - came
            return since if 0.0 <= since <= LONGEST_WAIT_S else 0.0
    return 0.0


def open_socket(address: Address) -> socket.socket:
    """The media socket. Raises `OSError`."""
    media = socket.socket(
        socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_DGRAM
    )
    try:
        media.setblocking(False)
        media.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        for forced, allowed, size in (
            (_SO_RCVBUFFORCE, socket.SO_RCVBUF, RECEIVE_BUFFER),
            (_SO_SNDBUFFORCE, socket.SO_SNDBUF, SEND_BUFFER),
        ):
            try:
                media.setsockopt(socket.SOL_SOCKET, forced, size)
            except PermissionError:  # without CAP_NET_ADMIN: as much as net.core.*mem_max allow
                media.setsockopt(socket.SOL_SOCKET, allowed, size)
        media.bind(address)
    except OSError:
        media.close()
        raise
    return media
