"""A call whose HTTP is done by one of OpenAI's server SDKs, and which hears its events there.

The SDKs bring no WebRTC: media are those of our lean client. The SDK begins the call with an offer
and a session, listens and steers on a WebSocket beside it (the sideband), and hangs up.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import httpx
import numpy as np
from aiortc import RTCCertificate

from tests.clients.lean_call import LeanCall, Options
from tests.interop.conversation import Talker
from tests.interop.microphone import Microphone
from tests.lab import speech
from transceiver import rtp
from transceiver.audio.opus import Decoder, Encoder

SESSION: dict[str, Any] = {
    "type": "realtime",
    "model": "test-model",
    "instructions": "Be brief.",
    "audio": {
        "input": {
            "turn_detection": {"type": "server_vad", "silence_duration_ms": 400},
            "transcription": {"model": "any"},
        }
    },
}
_PATIENCE_S = 10.0


class Sdk(Protocol):
    """What is tried of an SDK. `events` come as it gives them to its user."""

    events: list[dict[str, Any]]

    async def secret(self) -> Mapping[str, Any]:
        """`client_secrets.create`: the answer."""

    async def create(self, offer: str, session: Mapping[str, Any]) -> tuple[str, str]:
        """`calls.create`: the answer and the call's id."""

    async def attach(self, call_id: str) -> None:
        """Open the sideband."""

    async def send(self, event: Mapping[str, Any]) -> None:
        """By the sideband."""

    async def hang_up(self, call_id: str) -> None:
        """`calls.hangup`."""

    async def close(self) -> None:
        """Let go of everything."""


class Line(LeanCall):
    """The media of the call."""

    def __init__(self, options: Options, http: httpx.AsyncClient, talker: "SdkCaller") -> None:
        super().__init__(options, http)
        self._talker = talker
        self._encoder, self._decoder = Encoder(speech.RATE), Decoder(speech.RATE)
        self._sequence, self._timestamp = secrets.randbits(15), 0

    async def exchange(self, url: str, offer: str) -> tuple[str, str]:
        return await self._talker.exchange(offer)

    def tick(self, now: float) -> None:
        if self.state == "connected":
            pcm = self._talker.microphone.frame(self._talker.speaking)
            self._sequence = (self._sequence + 1) & 0xFFFF
            self._timestamp += len(pcm)
            payload = self._encoder.encode(pcm.tobytes())
            packet = rtp.Packet(
                self.speech.payload_type,
                self._sequence,
                self._timestamp,
                self.speech.ssrc,
                payload,
            )
            self.send(self.protect(rtp.build(packet)))
        self.keep_alive(now)

    def hear(self, packet: bytes, now: float) -> None:
        pcm = np.frombuffer(self._decoder.decode(rtp.parse(packet).payload), "<i2")
        self._talker.keep(pcm.astype(np.float32) / speech.FULL_SCALE)


class SdkCaller(Talker):
    def __init__(self, sdk: Sdk, host: str, microphone: Path) -> None:
        super().__init__()
        self.microphone = Microphone(microphone)
        self._sdk = sdk
        options = Options("", host, (b"",), RTCCertificate.generateCertificate(), channel=True)
        self._http = httpx.AsyncClient(trust_env=False)
        self._line = Line(options, self._http, self)

    async def exchange(self, offer: str) -> tuple[str, str]:
        """Hand in the offer; the answer, and where the call is."""
        answer, self.call_id = await self._sdk.create(offer, SESSION)
        return answer, f"http://call/{self.call_id}"

    async def connect(self) -> None:
        secret = await self._sdk.secret()
        self.own["secret"] = {"kind": str(secret.get("value"))[:3], "expires": secret["expires_at"]}
        self._clock = asyncio.create_task(self._keep_time())
        await self._line.start()
        await self._sdk.attach(self.call_id)
        await self._told("session.created")

    async def interrupt(self) -> None:
        await self._sdk.send({"type": "output_audio_buffer.clear"})

    async def trouble(self) -> None:
        """A second response while one is active: an error that names our event, and no harm."""
        await self._sdk.send({"type": "response.create", "event_id": "mine_1"})
        await self._told("error")

    async def hang_up(self) -> None:
        self.messages += [json.dumps(event) for event in self._sdk.events]
        await self._sdk.hang_up(self.call_id)
        await asyncio.sleep(0.5)
        await self._sdk.close()
        self._clock.cancel()
        await self._line.close()

    async def _told(self, kind: str) -> dict[str, Any]:
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                for event in self._sdk.events:
                    if event["type"] == kind:
                        return event
                await asyncio.sleep(0.02)

    async def _keep_time(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due += 0.02
            await asyncio.sleep(max(0.0, due - loop.time()))
            with contextlib.suppress(OSError):
                self._line.tick(loop.time())


def of(options: Mapping[str, Any]) -> SdkCaller:
    """By the options of `tests.interop.talk`: sdk, host, and where the SDK finds the services."""
    from tests.interop.sdk_npm import NpmSdk
    from tests.interop.sdk_python import PythonSdk

    make: type[PythonSdk | NpmSdk] = NpmSdk if options["sdk"] == "npm" else PythonSdk
    sdk = make(options["url"], options["key"], options["certificate"])
    return SdkCaller(sdk, options["host"], Path(options["microphone"]))
