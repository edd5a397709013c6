"""The SCTP association of one call: aiortc's, with bounds on what a peer can make us keep.

What goes over its data channels is `channels.py`. This module and `dtls.py` are the only ones that
touch private names of aiortc.
"""

import importlib.metadata
from collections.abc import Callable

from aiortc import rtcsctptransport
from aiortc.rtcdatachannel import RTCDataChannel
from aiortc.rtcsctptransport import DataChunk, RTCSctpCapabilities, RTCSctpTransport

from transceiver.aiortc_parts import require, run
from transceiver.dtls import DtlsTransport
from transceiver.flight import DATAGRAM_SIZE
from transceiver.sdp_answer import MAX_MESSAGE_SIZE, SCTP_PORT

_HEADERS = 28 + 65  # bytes of SCTP around a chunk's data, and of DTLS at most (CBC suites)
_USED = ("_handle_data", "_receive", "_receive_data_chunk", "_set_state")


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
        self, transport: DtlsTransport, on_too_large: Callable[[RTCDataChannel], None]
    ) -> None:
        super().__init__(transport, SCTP_PORT)
        self._on_too_large = on_too_large
        self.faults = 0  # what broke the protocol, and was dropped

    def begin(self, remote_port: int, remote_max_message_size: int) -> None:
        """Both sides begin (RFC 8841 section 9.3). `remote_max_message_size`: bytes, 0 = any."""
        run(self.start(RTCSctpCapabilities(remote_max_message_size), remote_port))

    def end(self) -> None:
        """Stop all timers. The peer hears nothing: DTLS says close_notify."""
        self._set_state(self.State.CLOSED)

    async def _handle_data(self, data: bytes) -> None:
        try:
            await super()._handle_data(data)
        except Exception:  # it asserts, and its parsers leak struct.error and more
            self.faults += 1

    async def _receive_data_chunk(self, chunk: DataChunk) -> None:
        if self._advertised_rwnd < len(chunk.user_data):
            self.faults += 1  # beyond our window: neither kept nor acknowledged
            return
        await super()._receive_data_chunk(chunk)

    async def _receive(self, stream_id: int, pp_id: int, data: bytes) -> None:
        channel = self._data_channels.get(stream_id)
        if channel is not None and len(data) > MAX_MESSAGE_SIZE:
            self._on_too_large(channel)
            return
        await super()._receive(stream_id, pp_id, data)
