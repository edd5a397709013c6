"""The pipe between the two relay processes: bounded each way.

A pair of unix sequenced-packet sockets, non-blocking, one JSON message a packet. When the reader
is slow the pipe fills and messages are dropped and counted: it carries news, never packets, and
each kind of news is repeated or can be read from the pinned maps. The end of the pipe is the end of
the other process.
"""

import contextlib
import select
import socket
from collections.abc import Iterator

from relayctl.messages import Message, decode, encode

MAX_MESSAGE = 128 * 1024  # bytes: a part of a table whose every entry is unusually long
BUFFER = 1 << 20  # bytes asked for each way


class ChannelClosed(Exception):
    """The other process is gone."""


class Channel:
    """One end of the pipe."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, BUFFER)
        self._socket = sock
        self.dropped = 0

    @classmethod
    def pair(cls) -> tuple["Channel", socket.socket]:
        """Our end, and the raw other end for the child."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(ours), theirs

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message) -> bool:
        """False when the pipe is full or closed: the message is dropped and counted."""
        data = encode(message)
        assert len(data) <= MAX_MESSAGE, f"{type(message).__name__} of {len(data)} bytes"
        try:
            self._socket.send(data)
        except OSError:  # full, or the other process is gone, which `receive` reports
            self.dropped += 1
            return False
        return True

    def has_room(self) -> bool:
        """Whether a message would go into the pipe: for who would wait rather than lose it."""
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        return bool(poll.poll(0))

    def receive(self) -> Iterator[Message]:
        """Every message that waits. Raises `ChannelClosed` at the end, `MessageError` on junk."""
        while True:
            try:
                data = self._socket.recv(MAX_MESSAGE)
            except BlockingIOError:
                return
            except ConnectionError:
                raise ChannelClosed from None
            if not data:
                raise ChannelClosed
            yield decode(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()
