"""The SCTP association of one call: aiortc's, with bounds on what a peer can make us keep.

What goes over its data channels is `channels.py`. This module and `dtls.py` are the only ones that
touch private names of aiortc.
"""

import importlib.metadata
from collections.abc import Callable

from aiortc import rtcsctptransport
from aiortc.rtcdatachannel import RTCDataChannel
from aiortc.rtcsctptransport import (
    SCTP_DATA_FIRST_FRAG,
    SCTP_DATA_LAST_FRAG,
    DataChunk,
    InboundStream,
    RTCSctpCapabilities,
    RTCSctpTransport,
    tsn_plus_one,
)

from transceiver.aiortc_parts import require, run
from transceiver.allowance import Allowance
from transceiver.dtls import DtlsTransport
from transceiver.flight import DATAGRAM_SIZE
from transceiver.sdp_answer import MAX_MESSAGE_SIZE, SCTP_PORT

PACKETS_PER_S = 500  # of the client's; half a megabyte a second
BURST = 4000
MAX_STREAMS = 256  # that a client may use; browsers number theirs from 0 or 1
MAX_PARTS = 2048  # of unfinished messages; our window is full with half of them
FOLD = 32  # parts of a message that become one

_HEADERS = 28 + 65  # bytes of SCTP around a chunk's data, and of DTLS at most (CBC suites)
_USED = ("_data_channel_flush", "_handle_data", "_receive", "_receive_data_chunk", "_set_state")


def prepare() -> None:
    """Once, at start: check aiortc and keep its packets small. Raises `AiortcError`."""
    version = importlib.metadata.version("aiortc")
    require(version, rtcsctptransport, ("USERDATA_MAX_LENGTH",), "rtcsctptransport")
    require(version, RTCSctpTransport, _USED, "RTCSctpTransport")
    # its own 1,189 bytes would become datagrams above ours
    rtcsctptransport.USERDATA_MAX_LENGTH = (DATAGRAM_SIZE - _HEADERS) // 4 * 4


class Association(RTCSctpTransport):
    """Channels that the peer opens come as the event `datachannel`."""

    def __init__(
        self,
        transport: DtlsTransport,
        on_too_large: Callable[[RTCDataChannel], None],
        clock: Callable[[], float],
    ) -> None:
        super().__init__(transport, SCTP_PORT)
        self._on_too_large = on_too_large
        self._clock = clock
        self._allowance = Allowance(PACKETS_PER_S, BURST)
        self.faults = 0  # what broke the protocol or came too fast, and was dropped

    def begin(self, remote_port: int, remote_max_message_size: int) -> None:
        """Both sides begin (RFC 8841 section 9.3). `remote_max_message_size`: bytes, 0 = any."""
        run(self.start(RTCSctpCapabilities(remote_max_message_size), remote_port))

    def end(self) -> None:
        """Stop all timers, after what was said last. Of the end itself the peer hears nothing: DTLS
        says close_notify."""
        run(self._data_channel_flush())
        self._set_state(self.State.CLOSED)

    @property
    def waiting(self) -> int:
        """Bytes of ours that the peer has no room for yet."""
        parts = sum(len(chunk.user_data) for chunk in self._outbound_queue)
        return parts + sum(len(data) for _, _, data in self._data_channel_queue)

    def fits(self, message: str | bytes) -> bool:
        """Whether the peer takes a message of this size."""
        size = len(message.encode() if isinstance(message, str) else message)
        return not self._remote_max_message_size or size <= self._remote_max_message_size

    async def _handle_data(self, data: bytes) -> None:
        if not self._allowance.take(self._clock()):
            self.faults += 1  # a sender that follows the protocol takes it for loss and slows down
            return
        try:
            await super()._handle_data(data)
        except Exception:  # it asserts, and its parsers leak struct.error and more
            self.faults += 1

    async def _receive_data_chunk(self, chunk: DataChunk) -> None:
        if not self._has_room(chunk):
            self.faults += 1  # neither kept nor acknowledged
            return
        await super()._receive_data_chunk(chunk)
        stream = self._inbound_streams.get(chunk.stream_id)
        if stream is not None and len(stream.reassembly) >= FOLD:
            self._fold(stream)

    def _has_room(self, chunk: DataChunk) -> bool:
        streams = self._inbound_streams
        if self._advertised_rwnd < len(chunk.user_data):
            return False
        if chunk.stream_id not in streams and len(streams) >= MAX_STREAMS:
            return False
        kept = sum(len(stream.reassembly) for stream in streams.values())
        # what closes a gap gets in last: it lets others go
        last = self._last_received_tsn
        closes_gap = last is not None and chunk.tsn == tsn_plus_one(last)
        return kept < (2 * MAX_PARTS if closes_gap else MAX_PARTS)

    def _fold(self, stream: InboundStream) -> None:
        """Make one part of those that a message begins with: aiortc looks at each part whenever
        one comes. Of a message above our limit only as much is kept as shows that."""
        parts = stream.reassembly
        if not parts[0].flags & SCTP_DATA_FIRST_FRAG:
            return
        run = 1
        while run < len(parts) and parts[run].tsn == tsn_plus_one(parts[run - 1].tsn):
            if parts[run].flags & (SCTP_DATA_FIRST_FRAG | SCTP_DATA_LAST_FRAG):
                break
            run += 1
        if run < FOLD:
            return
        data = b"".join(part.user_data for part in parts[:run])
        parts[0].user_data = data[: MAX_MESSAGE_SIZE + 1]
        parts[0].tsn = parts[run - 1].tsn
        del parts[1:run]
        self._advertised_rwnd += len(data) - len(parts[0].user_data)

    async def _receive(self, stream_id: int, pp_id: int, data: bytes) -> None:
        channel = self._data_channels.get(stream_id)
        if channel is not None and len(data) > MAX_MESSAGE_SIZE:
            self._on_too_large(channel)
            return
        await super()._receive(stream_id, pp_id, data)
