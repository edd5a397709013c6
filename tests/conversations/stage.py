"""A call on the whole transceiver core under a stepped clock: no network, no waiting.

The world carries datagrams and owns the clock. The event loop of the data channels and of a
backend's connection has that clock too, so ten seconds of talk pass as fast as they are computed,
and always the same way.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from aiortc.rtcdatachannel import RTCDataChannel, RTCDataChannelParameters
from aiortc.rtcsctptransport import RTCSctpCapabilities, RTCSctpTransport

from tests.conversations.heard import Heard
from tests.conversations.mouth import Mouth
from tests.unit.transceiver.harness import VIP, Client, World
from transceiver.aiortc_parts import run
from transceiver.backends.base import BackendFactory
from transceiver.calls import CallError
from transceiver.dialects.choice import DialectName

STEP_S = 0.01
LABEL = "oai-events"

_TURNS = 6  # of the loop in a step: what one side sends in it is read and answered by the other
_SCTP_PORT, _MAX_MESSAGE = 5000, 262_144
_TRANSPORT = ("a=ice-", "a=fingerprint", "a=setup")  # lines of each section


class SteppedLoop(asyncio.SelectorEventLoop):
    """Its clock is whatever `clock` says."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self.clock = clock

    def time(self) -> float:
        return self.clock()


class Visitor(Client):
    """A client with a data channel."""

    def offer(self, *, setup: str = "actpass", direction: str = "sendrecv") -> str:
        audio = super().offer(setup=setup, direction=direction)
        application = [
            *("m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "c=IN IP4 0.0.0.0", "a=mid:1"),
            *(f"a=sctp-port:{_SCTP_PORT}", f"a=max-message-size:{_MAX_MESSAGE}"),
        ]
        transport = [line for line in audio.split("\r\n") if line.startswith(_TRANSPORT)]
        bundled = audio.replace("a=group:BUNDLE 0", "a=group:BUNDLE 0 1")
        return bundled + "\r\n".join([*application, *transport]) + "\r\n"

    def open_channel(self) -> RTCDataChannel:
        """DTLS has to be there."""
        assert self.dtls is not None
        cast(Any, self.dtls.transport).role = "controlling"  # who says hello on SCTP
        sctp = RTCSctpTransport(self.dtls, _SCTP_PORT)
        channel = RTCDataChannel(sctp, RTCDataChannelParameters(label=LABEL))
        run(sctp.start(RTCSctpCapabilities(_MAX_MESSAGE), _SCTP_PORT))
        return channel


class Stage:
    """A call that is connected, with an open channel once `channel_open`. `step` it."""

    def __init__(
        self, make_backend: BackendFactory, dialect: DialectName, session: Mapping[str, Any]
    ) -> None:
        self.world = World(make_backend=make_backend)
        self.heard = Heard()
        self.mouth = Mouth()
        self._client = Visitor(("198.51.100.7", 40000))
        self._dialect = dialect
        self._session = session
        self._channel: RTCDataChannel | None = None
        self._began = self.world.now
        self._steps = 0
        self._listened = 0  # packets of the client that the ear has had

    def connect(self) -> None:
        """In a running loop."""
        world, client = self.world, self._client
        world.place(client)
        client.call_id, answer = world.calls.create(
            client.offer(), (VIP,), self._dialect, session=self._session
        )
        client.take_answer(answer)
        world.connect(client)
        self._channel = client.open_channel()
        self._channel.on("message", self._receive)

    @property
    def now(self) -> float:
        return self.world.now

    @property
    def channel_open(self) -> bool:
        return self._channel is not None and self._channel.readyState == "open"

    @property
    def ended(self) -> bool:
        try:
            self.world.calls.find(self._client.call_id)
        except CallError:
            return True
        return False

    def send(self, message: str | bytes) -> None:
        """On the channel."""
        assert self._channel is not None
        self._channel.send(message)

    async def step(self) -> None:
        """10 ms pass; every second time a packet of audio leaves."""
        world = self.world
        self._steps += 1
        world.now = self._began + self._steps * STEP_S
        if self._client.connected and not self._client.closed:
            if self._steps % 2:
                self._client.speak(self.mouth.packet())
            if self._steps % 100 == 0:
                self._client.check()
        world.pacer.tick(world.now)
        world.mux.tick(world.now)
        for _ in range(_TURNS):
            world.pump()
            await asyncio.sleep(0)
        for packet in self._client.heard[self._listened :]:
            self.heard.packet(packet.payload, self.now)
        self._listened = len(self._client.heard)

    async def end(self) -> None:
        """Whoever still talks is cut off."""
        self.world.calls.end_all()
        await self.step()

    def _receive(self, message: str | bytes) -> None:
        self.heard.event(json.loads(message), self.now)
