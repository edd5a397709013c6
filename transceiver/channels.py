"""The data channels of one call: a dialect behind each, and limits on what a client can do."""

import contextlib
import logging
from collections.abc import Callable

from aiortc.rtcdatachannel import RTCDataChannel

from transceiver.dialects.base import Dialect, Message
from transceiver.dtls import DtlsTransport
from transceiver.sctp import Association

MAX_CHANNELS = 16
MAX_MESSAGES_PER_S = 200
MAX_BUFFERED = 1 << 20  # bytes waiting for the client

log = logging.getLogger(__name__)


class Channels:
    """`on_open` is called for each channel; `on_slow` when the client takes nothing any more."""

    def __init__(
        self,
        dtls: DtlsTransport,
        dialect_of: Callable[[str], Dialect],
        clock: Callable[[], float],
        on_open: Callable[[], None],
        on_slow: Callable[[], None],
    ) -> None:
        self._association = Association(dtls, self._too_large, clock)
        self._association.on("datachannel", self._opened)
        self._dialect_of = dialect_of
        self._clock = clock
        self._on_open = on_open
        self._on_slow = on_slow
        self._dialects: dict[RTCDataChannel, Dialect] = {}
        self._second = 0
        self._messages = 0  # in that second
        self.refused = 0  # channels and messages beyond the limits

    def begin(self, remote_port: int, remote_max_message_size: int) -> None:
        self._association.begin(remote_port, remote_max_message_size)

    def end(self) -> None:
        self._association.end()
        self._dialects.clear()

    def _opened(self, channel: RTCDataChannel) -> None:
        if len(self._dialects) >= MAX_CHANNELS:
            self.refused += 1
            channel.close()
            return
        dialect = self._dialects[channel] = self._dialect_of(channel.label)
        channel.on("message", lambda message: self._received(channel, message))
        channel.on("close", lambda: self._dialects.pop(channel, None))
        self._on_open()
        self._say(channel, dialect.opened())

    def _received(self, channel: RTCDataChannel, message: Message) -> None:
        dialect = self._dialects.get(channel)
        if dialect is None or not self._admits():
            self.refused += 1
            return
        try:
            self._say(channel, dialect.received(message))
        except Exception:  # aiortc would take it for a fault of the peer
            log.exception("fault in a dialect")

    def _too_large(self, channel: RTCDataChannel) -> None:
        dialect = self._dialects.get(channel)
        if dialect is not None:
            self._say(channel, dialect.too_large())

    def _admits(self) -> bool:
        second = int(self._clock())
        if second != self._second:
            self._second, self._messages = second, 0
        self._messages += 1
        return self._messages <= MAX_MESSAGES_PER_S

    def _say(self, channel: RTCDataChannel, messages: list[Message]) -> None:
        for message in messages:
            if channel.readyState != "open":
                return
            try:
                channel.send(message)
            except ValueError:  # larger than the client takes
                self.refused += 1
                self._regret(channel)
        if self._association.waiting > MAX_BUFFERED:
            self._on_slow()

    def _regret(self, channel: RTCDataChannel) -> None:
        dialect = self._dialects.get(channel)
        with contextlib.suppress(ValueError):  # it does not even take that
            for message in [] if dialect is None else dialect.undelivered():
                channel.send(message)
