"""Associations over two of our transports joined by lists; only timers need the loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiortc import rtcsctptransport
from aiortc.rtcdatachannel import RTCDataChannel, RTCDataChannelParameters
from aiortc.rtcsctptransport import DataChunk, HeartbeatChunk, RTCSctpTransport

from tests.unit.transceiver.test_dtls import Pair
from transceiver import sctp
from transceiver.aiortc_parts import AiortcError, run
from transceiver.flight import DATAGRAM_SIZE
from transceiver.sctp import BURST, FOLD, MAX_PARTS, MAX_STREAMS, Association
from transceiver.sdp_answer import MAX_MESSAGE_SIZE


class Joined:
    """A server and a client association, established."""

    def __init__(self) -> None:
        self.now = 70.0
        self.pair = Pair()
        self.pair.server.dtls._unregister_data_receiver(self.pair.server)
        self.pair.client.dtls._unregister_data_receiver(self.pair.client)
        self.too_large: list[RTCDataChannel] = []
        self.opened: list[RTCDataChannel] = []
        self.messages: list[str | bytes] = []
        self.server = Association(self.pair.server.dtls, self.too_large.append, lambda: self.now)
        self.client = Association(self.pair.client.dtls, lambda channel: None, lambda: self.now)
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
        async def main() -> None:
            sctp.prepare()
            joined = await Joined().establish()
            try:
                await body(joined)
            finally:
                joined.end()
            await asyncio.sleep(0)
            assert len(asyncio.all_tasks()) == 1

        asyncio.run(main())

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


def parts_of(association: Association) -> list[DataChunk]:
    return [part for stream in association._inbound_streams.values() for part in stream.reassembly]


@scenario
async def test_a_message_twice_our_window_costs_our_limit_and_no_more(joined: Joined) -> None:
    channel = joined.channel()
    await joined.settle()
    kept: list[list[int]] = []
    receive = joined.server._receive_data_chunk

    async def watched(chunk: DataChunk) -> None:
        await receive(chunk)
        kept.append([len(part.user_data) for part in parts_of(joined.server)])

    joined.server._receive_data_chunk = watched  # type: ignore[method-assign]
    channel.send("x" * (1 << 21))
    for _ in range(10):
        await joined.settle()
    assert len(joined.too_large) == 1
    most = max(sum(sizes) for sizes in kept)
    assert MAX_MESSAGE_SIZE < most < MAX_MESSAGE_SIZE + FOLD * DATAGRAM_SIZE
    assert max(len(sizes) for sizes in kept) <= FOLD
    channel.send("next")
    await joined.settle()
    assert joined.messages == ["next"]
    assert joined.server._advertised_rwnd == 1 << 20
    assert joined.server.faults == 0


@pytest.mark.parametrize("parts", [1, FOLD, 6 * FOLD + 1])
def test_a_message_of_many_parts_is_whole(parts: int) -> None:
    @scenario
    async def body(joined: Joined) -> None:
        channel = joined.channel()
        await joined.settle()
        text = "".join(
            chr(65 + n % 26) for n in range(parts * rtcsctptransport.USERDATA_MAX_LENGTH)
        )
        channel.send(text)
        for _ in range(5):
            await joined.settle()
        assert joined.messages == [text]

    body()


def part(
    joined: Joined, ahead: int, flags: int, data: bytes = b"x", stream_id: int = 1
) -> DataChunk:
    """A part `ahead` of those that came."""
    chunk = DataChunk(flags)
    assert joined.server._last_received_tsn is not None
    chunk.tsn = (joined.server._last_received_tsn + ahead) % (1 << 32)
    chunk.stream_id, chunk.protocol, chunk.user_data = stream_id, 51, data
    return chunk


@scenario
async def test_crumbs_are_kept_up_to_a_number_and_a_gap_can_still_close(joined: Joined) -> None:
    unordered_middle = 4
    for n in range(MAX_PARTS + 10):
        run(joined.server._receive_data_chunk(part(joined, 2 + n, unordered_middle)))
    assert len(parts_of(joined.server)) == MAX_PARTS
    assert joined.server.faults == 10
    run(joined.server._receive_data_chunk(part(joined, 1, unordered_middle)))
    assert len(parts_of(joined.server)) == MAX_PARTS + 1


@scenario
async def test_a_client_that_floods_is_held_to_its_allowance(joined: Joined) -> None:
    channel = joined.channel()
    await joined.settle()
    beat = HeartbeatChunk()
    beat.params = [(1, b"beat")]
    for _ in range(BURST + 100):
        run(joined.client._send_chunk(beat))
    joined.pair.exchange()
    assert joined.server.faults >= 100
    channel.send("lost")
    await joined.settle()
    assert joined.messages == []
    joined.now += 1.0
    run(joined.client._send(channel.id or 0, 51, b"heard", ordered=False))
    await joined.settle()
    assert joined.messages == ["heard"]


@scenario
async def test_few_streams_are_kept(joined: Joined) -> None:
    for n in range(MAX_STREAMS + 5):
        run(joined.server._receive_data_chunk(part(joined, 1, 4, stream_id=n)))
    assert len(joined.server._inbound_streams) == MAX_STREAMS
    assert joined.server.faults == 5
    run(joined.server._receive_data_chunk(part(joined, 1, 4, stream_id=0)))
    assert joined.server.faults == 5


@scenario
async def test_what_waits_for_the_peer_is_counted(joined: Joined) -> None:
    joined.channel()
    await joined.settle()
    joined.pair.server.outbox.clear()
    for _ in range(3):
        joined.opened[0].send("y" * 60_000)
    await asyncio.sleep(0)
    in_flight = joined.server._flight_size
    assert joined.server.waiting == 180_000 - in_flight
    for _ in range(5):
        await joined.settle()
    assert joined.server.waiting == 0


@scenario
async def test_what_breaks_the_protocol_is_counted(joined: Joined) -> None:
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
