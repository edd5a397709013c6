"""A client who talks with a model through signaling: a turn, and one that interrupts the answer.

    python -m tests.lab.talker --url http://…/v1/realtime/calls --host 10.1.0.2 --record heard.wav

Prints JSON: `events`, each with `at`, the number of 20 ms packets that had come before it, and the
`session` that was asked for. The recording has those packets in their order, so `at` is a place in
it. Nothing here depends on how fast the machine is.
"""

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import httpx
import numpy as np
from aiortc import RTCCertificate

from tests.clients.lean_call import Options
from tests.conversations.caller import Caller, Wishes
from tests.conversations.mouth import phrase
from tests.lab import speech
from transceiver.audio.opus import Decoder

TURN_S = 2.0
INTERRUPTION_S = 1.5
HEARD_S = 0.6  # of the answer, before it is interrupted
PATIENCE_S = 30.0

SESSION = {
    "type": "realtime",
    "instructions": "be brief",
    "audio": {"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 400}}},
}


class Talker(Caller):
    """A caller who comes as any client does: a form with offer and session, to signaling."""

    def __init__(self, options: Options, http: httpx.AsyncClient) -> None:
        super().__init__(options, http, ("0.0.0.0", 0), Wishes(SESSION))
        self.marks: list[dict[str, Any]] = []

    async def exchange(self, url: str, offer: str) -> tuple[str, str]:
        form = {
            "sdp": (None, offer, "application/sdp"),
            "session": (None, json.dumps(SESSION), "application/json"),
        }
        response = await self._api.post(url, files=form)
        response.raise_for_status()
        return response.text, urlparse(response.headers["location"]).path

    def hear_message(self, message: str | bytes) -> None:
        super().hear_message(message)
        self.marks.append({"at": len(self.came), **json.loads(message)})

    async def told_of(self, kind: str, times: int) -> None:
        """Until an event of this kind came so many times."""
        await self.happens(
            lambda: len(self.events(kind)) >= times, f"no {times}. {kind}", PATIENCE_S
        )

    async def converse(self) -> None:
        await self.told_of("session.created", 1)
        self.say(phrase(0, TURN_S))
        await self.told_of("output_audio_buffer.stopped", 1)
        self.say(phrase(1, TURN_S))
        await self.told_of("output_audio_buffer.started", 2)
        heard = len(self.came)
        await self.happens(
            lambda: len(self.came) > heard + HEARD_S * 50, "the answer falls silent", PATIENCE_S
        )
        self.say(phrase(2, INTERRUPTION_S))
        await self.told_of("output_audio_buffer.stopped", 2)

    def recording(self) -> speech.Samples:
        decoder = Decoder(speech.RATE)
        pcm = b"".join(decoder.decode(each.payload) for each in self.came)
        return np.frombuffer(pcm, np.int16).astype(np.float32) / speech.FULL_SCALE


async def run(arguments: argparse.Namespace) -> None:
    options = Options(
        arguments.url,
        arguments.host,
        (b"",),
        RTCCertificate.generateCertificate(),
        channel=True,
    )
    async with httpx.AsyncClient(trust_env=False) as http:
        talker = Talker(options, http)
        clock = asyncio.create_task(talker.run())
        try:
            await talker.start()
            await talker.converse()
        finally:
            clock.cancel()
            await talker.close()
            speech.write_wav(arguments.record, talker.recording())
            print(json.dumps({"id": talker.call_id, "events": talker.marks}))


def main() -> None:
    parser = argparse.ArgumentParser(description="A client who talks with a model")
    parser.add_argument("--url", required=True, help="where offers go")
    parser.add_argument("--host", required=True, help="our address")
    parser.add_argument("--record", type=Path, required=True, help="WAV file of what is heard")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
