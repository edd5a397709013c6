"""The data channels of one call: a dialect behind each, and limits on what a client can do."""

import functools
import logging
from collections.abc import Callable

from aiortc.rtcdatachannel import RTCDataChannel

from transceiver.dialects.base import HANG_UP, Dialect, Message
from transceiver.dialects.reading import halves
from transceiver.dtls import DtlsTransport
from transceiver.events import Event
from transceiver.lifecycle import End
from transceiver.line import Line
from transceiver.sctp import Association

MAX_CHANNELS = 16
MAX_MESSAGES_PER_S = 200
MAX_BUFFERED = 1 << 20  # bytes waiting for the client

log = logging.getLogger(__name__)


class Channels:
    """Between the `line` of a call and its client. `on_open` is called for each channel."""

    def __init__(
        self,
        dtls: DtlsTransport,
        dialect_of: Callable[[str], Dialect],
        line: Line,
        clock: Callable[[], float],
        on_open: Callable[[], None],
    ) -> None:
        self._association = Association(dtls, self._too_large, clock)
        self._association.on("datachannel", self._opened)
        self._dialect_of = dialect_of
        self._line = line
        self._clock = clock
        self._on_open = on_open
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
        ear = functools.partial(self._tell, channel)
        channel.on("message", lambda message: self._received(channel, message))
        channel.on("close", lambda: self._closed(channel, ear))
        self._on_open()
        if dialect.listens:
            self._line.listen(ear)

    def _closed(self, channel: RTCDataChannel, ear: Callable[[Event], None]) -> None:
        self._dialects.pop(channel, None)
        self._line.deafen(ear)

    def _received(self, channel: RTCDataChannel, message: Message) -> None:
        dialect = self._dialects.get(channel)
        if dialect is None or not self._admits():
            self.refused += 1
            return
        try:
            events, answers = dialect.received(message)
        except Exception:  # aiortc would take it for a fault of the peer
            log.exception("fault in a dialect")
            return
        self._say(channel, answers)
        for event in events:
            if event is HANG_UP:
                self._line.finish(End.CLOSED_BY_PEER, self._clock())
            else:
                self._line.hear(event, self._clock())

    def _tell(self, channel: RTCDataChannel, event: Event) -> None:
        """An event of the backend; in pieces if the client takes no message of its size."""
        dialect = self._dialects.get(channel)
        if dialect is None:
            return
        try:
            messages = dialect.said(event)
        except Exception:
            log.exception("fault in a dialect")
            return
        pieces = None if all(map(self._association.fits, messages)) else halves(event)
        if pieces is None:
            self._say(channel, messages)
            return
        for piece in pieces:
            self._tell(channel, piece)

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
            if self._association.fits(message):
                channel.send(message)
            else:
                self.refused += 1
                self._regret(channel)
        if self._association.waiting > MAX_BUFFERED:
            self._line.cut(End.SLOW_CLIENT)

    def _regret(self, channel: RTCDataChannel) -> None:
        dialect = self._dialects.get(channel)
        for message in [] if dialect is None else dialect.undelivered():
            if self._association.fits(message):
                channel.send(message)
