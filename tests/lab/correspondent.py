"""A client who writes to a model through signaling, and goes without a word.

    python -m tests.lab.correspondent --url http://…/v1/realtime/calls --host 10.1.0.2 \
        --say '[{"type": "response.create"}]' --until response.done

Prints JSON: `status` and `code` of the answer to its offer, the call's `id`, the `events` it was
told, `heard` packets. It says each event once the one before was answered by an event of the kinds
of `--until`, and ends when that is so for the last; `--goodbye` hangs up.
"""

import argparse
import asyncio
import json
import os
from typing import Any

import httpx
from aiortc import RTCCertificate

from tests.clients.lean_call import LeanCall, Options

PATIENCE_S = 40.0
LISTEN_S = 0.3


class Correspondent(LeanCall):
    """`events`: what it was told, in order."""

    def __init__(self, options: Options, http: httpx.AsyncClient) -> None:
        super().__init__(options, http)
        self.events: list[dict[str, Any]] = []
        self.heard = 0

    def hear_message(self, message: str | bytes) -> None:
        self.events.append(json.loads(message))

    def hear(self, packet: bytes, now: float) -> None:
        self.heard += 1

    async def run(self) -> None:
        """Keep ICE going."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(0.02)
            self.tick(loop.time())

    async def say(self, event: dict[str, Any], kinds: list[str]) -> None:
        """Until it is answered by an event of one of these kinds."""
        assert self.channel is not None
        before = self._answers(kinds)
        self.channel.send(json.dumps(event))
        await self._happens(lambda: self._answers(kinds) > before)

    async def told(self, kind: str) -> None:
        await self._happens(lambda: self._answers([kind]) > 0)

    def _answers(self, kinds: list[str]) -> int:
        return sum(event["type"] in kinds for event in self.events)

    async def _happens(self, what: Any) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not what():  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """What is printed."""
    certificate = RTCCertificate.generateCertificate()
    options = Options(arguments.url, arguments.host, (b"\xf8\xff\xfe",), certificate, channel=True)
    async with httpx.AsyncClient(trust_env=False, timeout=20.0) as http:
        call = Correspondent(options, http)
        clock = asyncio.create_task(call.run())
        try:
            await call.start()
        except httpx.HTTPStatusError as refused:
            error = refused.response.json()["error"]
            return {"status": refused.response.status_code, "code": error["code"]}
        await call.told("session.created")
        for event in json.loads(arguments.say):
            await call.say(event, arguments.until)
        await asyncio.sleep(LISTEN_S)
        clock.cancel()
        call_id = call.report()["id"].partition("?")[0]
        if arguments.goodbye:
            await call.close()
        return {"status": 201, "id": call_id, "events": call.events, "heard": call.heard}


def main() -> None:
    parser = argparse.ArgumentParser(description="A client who writes to a model")
    parser.add_argument("--url", required=True, help="where offers go")
    parser.add_argument("--host", required=True, help="our address")
    parser.add_argument("--say", default="[]", help="JSON list of events")
    parser.add_argument("--until", nargs="*", default=[], help="kinds of events that answer one")
    parser.add_argument("--goodbye", action="store_true", help="hang up at the end")
    print(json.dumps(asyncio.run(run(parser.parse_args()))), flush=True)
    os._exit(0)  # whatever would still say something


if __name__ == "__main__":
    main()
