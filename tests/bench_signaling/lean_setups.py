"""Calls of the lean client, one after another, each until it hears something: their timelines.

    python -m tests.bench_signaling.lean_setups --url http://…/v1/realtime/calls --calls 50

Prints one JSON array, an object a call: milliseconds from the offer to each phase. The first call
opens the connection that all of them use, and is left out.
"""

import argparse
import asyncio
import json

import httpx
from aiortc import RTCCertificate

from tests.clients import opus_source
from tests.clients.lean_call import LeanCall, Options
from tests.lab import speech

PATIENCE_S = 10.0
TICK_S = 0.01


class Listener(LeanCall):
    def __init__(self, options: Options, http: httpx.AsyncClient) -> None:
        super().__init__(options, http)
        self.heard = asyncio.Event()

    def hear(self, packet: bytes, now: float) -> None:
        self.heard.set()


async def set_up(options: Options, http: httpx.AsyncClient) -> dict[str, float]:
    """One call, up and down again."""
    call = Listener(options, http)
    keeping = asyncio.create_task(_keep_alive(call))
    try:
        await call.start()
        async with asyncio.timeout(PATIENCE_S):
            await call.heard.wait()
        return dict(call.timeline.marks)
    finally:
        keeping.cancel()
        await call.close()


async def _keep_alive(call: LeanCall) -> None:
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(TICK_S)
        call.keep_alive(loop.time())


async def run(url: str, host: str, calls: int) -> list[dict[str, float]]:
    certificate = RTCCertificate.generateCertificate()
    options = Options(url, host, opus_source.packets(speech.SPOKEN), certificate)
    async with httpx.AsyncClient(trust_env=False) as http:
        return [await set_up(options, http) for _ in range(calls + 1)][1:]


def main() -> None:
    parser = argparse.ArgumentParser(description="Set-ups of the lean client")
    parser.add_argument("--url", required=True)
    parser.add_argument("--host", required=True, help="our address")
    parser.add_argument("--calls", type=int, default=50)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(run(given.url, given.host, given.calls))))


if __name__ == "__main__":
    main()
