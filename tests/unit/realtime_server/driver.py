"""A client of the test server, for tests: what OpenAI's own package would say and check."""

import base64
import json
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.judges import openai_types
from tests.realtime_server import sound
from tests.realtime_server.server import RealtimeServer

Event = dict[str, Any]


def check(event: Event) -> None:
    """It is an event of the published schema."""
    assert openai_types.faults(event) == []


class Driver:
    def __init__(self, socket: ClientConnection, beta: bool = False) -> None:
        self._socket = socket
        self._beta = beta
        self.heard: list[Event] = []

    async def send(self, kind: str, **fields: Any) -> None:
        await self._socket.send(json.dumps({"type": kind, **fields}))

    async def until(self, kind: str) -> Event:
        """The next event of this type; those before it are in `heard` too."""
        while True:
            event: Event = json.loads(await self._socket.recv())
            if not self._beta:
                check(event)
            self.heard.append(event)
            if event["type"] == kind:
                return event

    async def speak(self, seconds: float, quiet_s: float = 0.6) -> None:
        """A turn: speech, then silence, in appends of 20 ms."""
        samples = sound.tone(seconds) + bytes(round(quiet_s * 1000) * sound.BYTES_PER_MS)
        for at in range(0, len(samples), size := 20 * sound.BYTES_PER_MS):
            audio = base64.b64encode(samples[at : at + size]).decode()
            await self.send("input_audio_buffer.append", audio=audio)

    def types(self) -> list[str]:
        """What was heard since the last call, runs of one type as one."""
        kinds = [event["type"] for event in self.heard]
        self.heard.clear()
        return [kind for n, kind in enumerate(kinds) if n == 0 or kinds[n - 1] != kind]


async def driver(server: RealtimeServer) -> Driver:
    socket = await connect(server.url, compression=None)
    return Driver(socket, server.script.dialect == "beta")
