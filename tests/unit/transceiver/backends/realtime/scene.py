"""A backend of a call beside the test server, in real time."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from tests.realtime_server import sound
from tests.realtime_server.script import Script
from tests.realtime_server.server import RealtimeServer
from tests.unit.realtime_server.driver import check
from tests.unit.transceiver.backends.around import Peer, Wire
from transceiver.audio.opus import Encoder
from transceiver.backends.keeper import Terms
from transceiver.backends.realtime.backend import Realtime
from transceiver.backends.realtime.target import Target
from transceiver.events import Event
from transceiver.lifecycle import End
from transceiver.rtp import Packet

WAIT_S = 20.0  # for anything, on a machine that does much else


class Client(Peer):
    """Waits for events, each of which is checked against the published schema, but for one that is
    in none."""

    def __init__(self, session: dict[str, Any] | None = None) -> None:
        super().__init__(session)
        self._news = asyncio.Event()
        self._at = 0

    def say(self, event: Event) -> None:
        event = {"event_id": self.new_id("event"), **event}
        if event["type"] != "new.thing":
            check(event)
        super().say(event)
        self._news.set()

    def end(self, reason: End) -> None:
        super().end(reason)
        self._news.set()

    async def until(self, kind: str) -> Event:
        """The next event of this type, behind the one that was last waited for."""
        while True:
            for at in range(self._at, len(self.said)):
                if self.said[at]["type"] == kind:
                    self._at = at + 1
                    return self.said[at]
            await self._heard()

    async def code(self, code: str) -> Event:
        """The next `error` event with this code."""
        while True:
            event = await self.until("error")
            if event["error"]["code"] == code:
                return event

    async def gone(self) -> End:
        while not self.ended:
            await self._heard()
        return self.ended[0]

    async def _heard(self) -> None:
        self._news.clear()
        await self._news.wait()


class Scene:
    def __init__(self, server: RealtimeServer, target: Target, session: dict[str, Any]) -> None:
        self.server = server
        self.client = Client(session)
        self.wire = Wire(time.monotonic())
        self.backend = Realtime(
            self.client, target, Terms(), clock=time.monotonic, random=lambda: 0.0
        )
        self._encoder = Encoder(sound.RATE)
        self._sequence = 0
        self._paused = 0  # packets
        self._closed = False

    def begin(self) -> None:
        self.backend.begin(self.wire, time.monotonic())

    def event(self, kind: str, **fields: Any) -> None:
        self.backend.event({"type": kind, **fields}, time.monotonic())

    async def speak(self, seconds: float, quiet_s: float = 0.7) -> None:
        """A turn, packet by packet, ten times faster than one speaks."""
        samples = sound.tone(seconds) + bytes(round(quiet_s * 1000) * sound.BYTES_PER_MS)
        for at in range(0, len(samples), size := 20 * sound.BYTES_PER_MS):
            self.packet(samples[at : at + size])
            await asyncio.sleep(0.002)

    def packet(self, samples: bytes, gap: int = 0) -> None:
        """20 ms; `gap` packets' time passes before it."""
        self._sequence += 1
        self._paused += gap
        ticks = (self._sequence + self._paused) * 960
        packet = Packet(111, self._sequence & 0xFFFF, ticks, 1, self._encoder.encode(samples))
        self.backend.receive(packet, True, time.monotonic())

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.backend.close()

    async def heard(self, condition: Callable[[], object]) -> None:
        """Until the condition holds."""
        while not condition():  # noqa: ASYNC110 - it may be about anything
            await asyncio.sleep(0.005)

    async def _pace(self) -> None:
        """What the pacer and the wheel do."""
        while True:
            now = time.monotonic()
            if self.wire.rate and not self._closed:
                self.wire.run(now)
                if now >= self.backend.deadline:
                    self.backend.timer(now)
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def scene(
    script: Script | None = None,
    *,
    begun: bool = True,
    session: dict[str, Any] | None = None,
    **target: Any,
) -> AsyncIterator[Scene]:
    server = RealtimeServer(script)
    await server.start()
    options = {"dialect": server.script.dialect, "connect_s": 2.0, **target}
    one = Scene(server, Target(server.url, **options), session or {})
    pacer = asyncio.get_running_loop().create_task(one._pace())
    try:
        async with asyncio.timeout(WAIT_S):
            if begun:
                one.begin()
            yield one
    finally:
        pacer.cancel()
        one.close()
        await asyncio.gather(pacer, one.backend._upstream._task, return_exceptions=True)
        await server.stop()
