"""Associations over two of our transports joined by lists; only timers need the loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiortc.rtcdatachannel import RTCDataChannel, RTCDataChannelParameters
from aiortc.rtcsctptransport import RTCSctpTransport

from tests.unit.transceiver.test_dtls import Pair
from transceiver import sctp
from transceiver.aiortc_parts import AiortcError
from transceiver.flight import DATAGRAM_SIZE
from transceiver.sctp import Association
from transceiver.sdp_answer import MAX_MESSAGE_SIZE


class Joined:
    """A server and a client association, established."""

    def __init__(self) -> None:
        self.pair = Pair()
        self.pair.server.dtls._unregister_data_receiver(self.pair.server)
        self.pair.client.dtls._unregister_data_receiver(self.pair.client)
        self.too_large: list[RTCDataChannel] = []
        self.opened: list[RTCDataChannel] = []
        self.messages: list[str | bytes] = []
        self.server = Association(self.pair.server.dtls, self.too_large.append)
        self.client = Association(self.pair.client.dtls, lambda channel: None)
        self.server.on("datachannel", self._open)

    def _open(self, channel: RTCDataChannel) -> None:
        self.opened.append(channel)
        channel.on("message", self.messages.append)

    async def establish(self) -> "Joined":
        self.pair.begin().exchange()
        self.server.begin(5000, 65536)
        self.client.begin(5000, 0)
        await self.settle()
        return self

    async def settle(self) -> None:
        for _ in range(400):
            await asyncio.sleep(0)
            self.pair.exchange()

    def channel(self, label: str = "events") -> RTCDataChannel:
        return RTCDataChannel(self.client, RTCDataChannelParameters(label=label))

    def end(self) -> None:
        self.server.end()
        self.client.end()


def scenario(
    body: Callable[[Joined], Coroutine[Any, Any, None]],
) -> Callable[[], None]:
    def test() -> None:
        async def run() -> None:
            sctp.prepare()
            joined = await Joined().establish()
            try:
                await body(joined)
            finally:
                joined.end()
            await asyncio.sleep(0)
            assert len(asyncio.all_tasks()) == 1

        asyncio.run(run())

    test.__name__ = body.__name__
    return test


@scenario
async def test_a_channel_of_the_client_opens_and_speaks(joined: Joined) -> None:
    channel = joined.channel()
    await joined.settle()
    assert channel.readyState == "open"
    assert [opened.label for opened in joined.opened] == ["events"]
    channel.send("hello")
    channel.send(b"bytes")
    await joined.settle()
    assert joined.messages == ["hello", b"bytes"]


@scenario
async def test_datagrams_stay_below_our_size(joined: Joined) -> None:
    channel = joined.channel()
    await joined.settle()
    channel.send("x" * 20_000)
    joined.opened[0].send("y" * 20_000)
    await joined.settle()
    assert len(joined.messages) == 1
    assert DATAGRAM_SIZE - 100 < max(joined.pair.server.sizes) <= DATAGRAM_SIZE


@scenario
async def test_a_message_above_our_size_is_told_and_the_association_lives(joined: Joined) -> None:
    channel = joined.channel()
    await joined.settle()
    channel.send("x" * (MAX_MESSAGE_SIZE + 1))
    channel.send("next")
    for _ in range(20):
        await joined.settle()
    assert [it.label for it in joined.too_large] == ["events"]
    assert joined.messages == ["next"]


@scenario
async def test_a_message_without_end_fills_our_window_and_no_more(joined: Joined) -> None:
    channel = joined.channel()
    await joined.settle()
    channel.send("x" * (1 << 21))
    for _ in range(60):
        await joined.settle()
    kept = sum(
        len(chunk.user_data)
        for stream in joined.server._inbound_streams.values()
        for chunk in stream.reassembly
    )
    assert kept <= 1 << 20
    assert joined.server.faults > 0
    assert joined.messages == []


@scenario
async def test_what_breaks_the_protocol_is_counted(joined: Joined) -> None:
    from transceiver.aiortc_parts import run

    run(joined.pair.client.dtls._send_data(b"\x13\x88\x13\x88" + bytes(40)))
    open_again = b"\x03" + bytes(11)
    run(joined.client._send(3, 50, open_again))
    run(joined.client._send(3, 50, open_again))  # aiortc asserts that it is no repetition
    run(joined.client._send(3, 51, b"\xff\xfe"))  # no UTF-8
    await joined.settle()
    assert joined.server.faults == 2
    channel = joined.channel()
    await joined.settle()
    assert channel.readyState == "open"


def test_an_aiortc_without_our_names_is_refused_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(RTCSctpTransport, "_receive_data_chunk")
    with pytest.raises(AiortcError, match=r"RTCSctpTransport\._receive_data_chunk"):
        sctp.prepare()
