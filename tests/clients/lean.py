"""Lean WebRTC test client: many calls in one process, one JSON report.

    python -m tests.clients.lean --url http://…/v1/realtime/calls --calls 30 --seconds 10

Without `--seconds` it obeys commands on stdin, one JSON object a line, and answers each with a
line: {"op": "report" | "mark" | "move" | "restart" | "mute" | "unmute" | "stop", "calls": [0, …]}.
`calls` left out means all. See `LeanDriver`.
"""

import argparse
import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from aiortc import RTCCertificate

from tests.clients import opus_source
from tests.clients.lean_call import LeanCall, Options
from tests.lab import speech

_PHASES = 4  # calls send at different times of the 20 ms
_DRAIN_S = 0.3  # what is under way arrives before the books are closed


class LeanClient:
    """The calls of one process."""

    def __init__(self, calls: list[LeanCall]) -> None:
        self.calls = calls
        self._began = time.monotonic()

    async def set_up(self, every_s: float) -> None:
        """Start all, one `every_s` seconds; a call that fails says so in its report."""
        starts = []
        for call in self.calls:
            starts.append(asyncio.create_task(_start(call)))
            await asyncio.sleep(every_s)
        await asyncio.gather(*starts)

    async def keep_time(self) -> None:
        """Tick every call each 20 ms, for ever."""
        due = time.monotonic()
        while True:
            for phase in range(_PHASES):
                due += 0.02 / _PHASES
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                for call in self.calls[phase::_PHASES]:
                    call.tick(time.monotonic())

    async def obey(self, request: dict[str, Any]) -> dict[str, Any]:
        chosen = [self.calls[n] for n in request.get("calls", range(len(self.calls)))]
        match request["op"]:
            case "move":
                return {"addresses": [c.move(request.get("announce", False)) for c in chosen]}
            case "restart":
                return {"ms": await asyncio.gather(*(call.restart() for call in chosen))}
            case "mute" | "unmute" as op:
                for call in chosen:
                    call.muted = op == "mute"
            case "mark":
                for call in chosen:
                    call.speech.down.mark(time.monotonic())
            case "stop":
                await self.stop()
            case "report":
                pass
            case op:
                return {"error": f"unknown op {op!r}"}
        return self.report()

    async def stop(self) -> None:
        for call in self.calls:
            call.fall_silent()
        await asyncio.sleep(_DRAIN_S)
        await asyncio.gather(*(call.close() for call in self.calls))

    def report(self) -> dict[str, Any]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "calls": [call.report() for call in self.calls],
            "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
            "wall_s": round(time.monotonic() - self._began, 3),
        }


async def _start(call: LeanCall) -> None:
    try:
        await call.start()
    except (TimeoutError, ValueError, OSError, httpx.HTTPError) as error:
        call.state, call.error = "failed", repr(error)


async def run(arguments: argparse.Namespace) -> int:
    """Exit status: 0 if every call was set up."""
    payloads = opus_source.packets(arguments.wav)
    certificate = RTCCertificate.generateCertificate()
    options = Options(
        arguments.url, arguments.host, payloads, certificate, arguments.channel, arguments.rto
    )
    async with httpx.AsyncClient(trust_env=False, verify=not arguments.insecure) as http:
        client = LeanClient([LeanCall(options, http) for _ in range(arguments.calls)])
        clock = asyncio.create_task(client.keep_time())
        await client.set_up(arguments.every)
        if arguments.seconds is None:
            await _obey_stdin(client)
        else:
            await asyncio.sleep(arguments.seconds)
            await client.stop()
            print(json.dumps(client.report()))
        clock.cancel()
    return int(any(call.error for call in client.calls))


async def _obey_stdin(client: LeanClient) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print(json.dumps(client.report()), flush=True)
    async for line in reader:
        request = json.loads(line)
        print(json.dumps(await client.obey(request)), flush=True)
        if request["op"] == "stop":
            return
    await client.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="Lean WebRTC test client")
    parser.add_argument("--url", required=True, help="where to POST the SDP offer")
    parser.add_argument("--host", default="10.1.0.2", help="our address")
    parser.add_argument("--calls", type=int, default=1)
    parser.add_argument("--every", type=float, default=0.0, help="seconds between set-ups")
    parser.add_argument("--seconds", type=float, help="how long to talk; else obey stdin")
    parser.add_argument("--wav", type=Path, default=speech.SPOKEN, help="speech to send")
    parser.add_argument("--channel", action="store_true", help="open a data channel")
    parser.add_argument("--rto", type=float, default=0.1, help="first ICE retransmission, s")
    parser.add_argument("--insecure", action="store_true", help="take any certificate")
    sys.exit(asyncio.run(run(parser.parse_args())))


if __name__ == "__main__":
    main()
