import asyncio
import contextlib
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiortc.rtcdatachannel import RTCDataChannel, RTCDataChannelParameters

from tests.unit.transceiver.recorder import Recorder
from tests.unit.transceiver.test_dtls import Pair
from transceiver import sctp
from transceiver.aiortc_parts import run
from transceiver.channels import MAX_CHANNELS, MAX_MESSAGES_PER_S, Channels
from transceiver.dialects.base import HANG_UP, Dialect, Heard, Message
from transceiver.dialects.plain import Plain
from transceiver.events import Event
from transceiver.lifecycle import End
from transceiver.sctp import Association

OPEN = struct.Struct("!BBHLHH")  # type, channel type, priority, reliability, label, protocol


class Chatty(Plain):
    """Says each event's `text`; every message is an event, except for `fault`."""

    listens = True

    def said(self, event: Event) -> list[Message]:
        return [event["delta"]] if "delta" in event else [event["text"]]

    def received(self, message: Message) -> Heard:
        if message == "fault":
            raise RuntimeError("a fault of ours")
        if message == "bye":
            return [HANG_UP], []
        _, answers = super().received(message)
        return [{"type": "said", "text": message}], answers

    def too_large(self) -> list[Message]:
        return ["too large"]

    def undelivered(self) -> list[Message]:
        return ["lost"]


class Ear(Association):
    """A client that notes (stream, data) of all messages, whether or not it knows the channel."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.heard: list[tuple[int, bytes]] = []

    async def _receive(self, stream_id: int, pp_id: int, data: bytes) -> None:
        self.heard.append((stream_id, data))
        with contextlib.suppress(AssertionError):  # an ACK for a channel that it did not open
            await super()._receive(stream_id, pp_id, data)


class Talk:
    def __init__(self) -> None:
        self.now = 50.0
        self.opens = 0
        self.ends: list[End] = []
        self.backend = Recorder()
        self.line = self.backend.line(lambda: self.line.timer(self.now), self.ends.append)
        self.labels: list[str] = []
        self.pair = Pair()
        for end in (self.pair.server, self.pair.client):
            end.dtls._unregister_data_receiver(end)
        self.channels = Channels(
            self.pair.server.dtls, self._dialect_of, self.line, lambda: self.now, self._open
        )
        self.client = Ear(self.pair.client.dtls, lambda channel: None, lambda: self.now)
        self.heard = self.client.heard
        self.deaf = False

    def _dialect_of(self, label: str) -> Dialect:
        self.labels.append(label)
        return Plain() if label == "plain" else Chatty()

    def _open(self) -> None:
        self.opens += 1

    async def settle(self, rounds: int = 200) -> None:
        for _ in range(rounds):
            await asyncio.sleep(0)
            if self.deaf:
                self.pair.server.outbox.clear()
            self.pair.exchange()

    def channel(self, label: str = "events") -> tuple[RTCDataChannel, list[Message]]:
        heard: list[Message] = []
        channel = RTCDataChannel(self.client, RTCDataChannelParameters(label=label))
        channel.on("message", heard.append)
        return channel, heard


def talk(body: Callable[[Talk], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        sctp.prepare()
        it = Talk()
        it.pair.begin().exchange()
        it.channels.begin(5000, 65536)
        it.client.begin(5000, 0)
        await it.settle()
        try:
            await body(it)
        finally:
            it.channels.end()
            it.client.end()

    asyncio.run(main())


def test_the_dialect_of_the_label_tells_answers_and_passes_on() -> None:
    async def body(it: Talk) -> None:
        it.line.say({"type": "x", "text": "early"})
        _, nothing = it.channel("plain")
        await it.settle()
        channel, heard = it.channel("oai-events")
        await it.settle()
        channel.send("ping 1")
        await it.settle()
        it.line.say({"type": "x", "text": "late"})
        await it.settle()
        assert heard == ["early", "pong 1", "late"]
        assert nothing == []
        assert it.backend.events == [{"type": "said", "text": "ping 1"}]
        assert it.labels == ["plain", "oai-events"]
        assert it.opens == 2
        channel.close()
        await it.settle()
        it.line.say({"type": "x", "text": "kept"})
        _, other = it.channel("oai-events")
        await it.settle()
        assert (heard[3:], other) == ([], ["kept"])

    talk(body)


def test_a_client_may_hang_up() -> None:
    async def body(it: Talk) -> None:
        channel, _ = it.channel()
        await it.settle()
        channel.send("bye")
        await it.settle()
        assert it.backend.finishing == [End.CLOSED_BY_PEER]
        assert it.backend.events == []

    talk(body)


def test_an_event_that_is_too_long_for_the_client_comes_in_pieces() -> None:
    async def body(it: Talk) -> None:
        _, heard = it.channel()
        await it.settle()
        it.channels._association._remote_max_message_size = 4
        it.line.say({"type": "response.output_text.delta", "delta": "once upon a time"})
        it.line.say({"type": "x", "text": "no end of it"})
        await it.settle()
        assert "".join(map(str, heard)) == "once upon a timelost"
        assert len(heard) == 5

    talk(body)


@pytest.mark.parametrize("stream_id", [1, 1001, 65533])
def test_a_client_may_speak_before_we_said_that_the_channel_is_open(stream_id: int) -> None:
    """Clients choose ids as they like, Firefox from 1000 or so (RFC 8832 section 6)."""

    async def body(it: Talk) -> None:
        label = b"oai-events"
        run(it.client._send(stream_id, 50, OPEN.pack(3, 0, 0, 0, len(label), 0) + label))
        run(it.client._send(stream_id, 51, b"early"))
        await it.settle()
        assert it.labels == ["oai-events"]
        assert it.heard[-1:] == [(stream_id, b"early")]

    talk(body)


def test_channels_beyond_the_limit_are_closed() -> None:
    async def body(it: Talk) -> None:
        made = [it.channel(f"c{n}") for n in range(MAX_CHANNELS + 2)]
        await it.settle(1500)
        states = [channel.readyState for channel, _ in made]
        assert states == ["open"] * MAX_CHANNELS + ["closed"] * 2
        assert it.channels.refused == 2

    talk(body)


def test_a_closed_channel_makes_room() -> None:
    async def body(it: Talk) -> None:
        first, _ = it.channel()
        await it.settle()
        first.close()
        await it.settle()
        assert len(it.channels._dialects) == 0

    talk(body)


def test_messages_beyond_the_rate_are_dropped_until_the_next_second() -> None:
    async def body(it: Talk) -> None:
        channel, heard = it.channel()
        await it.settle()
        for _ in range(MAX_MESSAGES_PER_S + 10):
            channel.send("x")
        await it.settle(3000)
        assert len(heard) == MAX_MESSAGES_PER_S
        it.now += 1
        channel.send("y")
        await it.settle()
        assert heard[-1] == "y"

    talk(body)


def test_a_fault_of_ours_costs_one_message() -> None:
    async def body(it: Talk) -> None:
        channel, heard = it.channel()
        await it.settle()
        channel.send("fault")
        channel.send("x")
        await it.settle()
        assert heard == ["x"]

    talk(body)


def test_too_large_for_us_and_too_large_for_the_client() -> None:
    async def body(it: Talk) -> None:
        channel, heard = it.channel()
        await it.settle()
        channel.send("x" * 300_000)
        await it.settle(3000)
        assert heard == ["too large"]
        channel.send("x" * 100_000)  # its echo is above the 65,536 that the client takes
        await it.settle(3000)
        assert it.channels.refused == 1
        assert heard[1:] == ["lost"]
        channel.send("x")
        await it.settle()
        assert heard[2:] == ["x"]

    talk(body)


def test_a_client_that_takes_not_even_regrets_gets_none(caplog: pytest.LogCaptureFixture) -> None:
    async def body(it: Talk) -> None:
        channel, heard = it.channel()
        await it.settle()
        it.channels._association._remote_max_message_size = 3
        channel.send("longer")
        channel.send("x")
        await it.settle()
        assert heard == ["x"]
        assert it.channels.refused == 1
        assert not caplog.records

    talk(body)


def test_a_client_that_takes_nothing_is_slow() -> None:
    async def body(it: Talk) -> None:
        channel, _ = it.channel()
        await it.settle()
        dialect_channel = next(iter(it.channels._dialects))
        it.deaf = True
        for _ in range(40):
            it.channels._say(dialect_channel, ["x" * 60_000])
        assert set(it.ends) == {End.SLOW_CLIENT}
        assert channel.readyState == "open"

    talk(body)
