"""OpenAI's npm package in Node: `sideband.mjs`, driven by lines of JSON."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.browser import browser

_PROGRAM = Path(__file__).with_name("sideband.mjs")


class NpmSdk:
    def __init__(self, url: str, key: str, certificate: str | None = None) -> None:
        """`certificate`: of the services, for Node to trust. The package knows wss only."""
        self.events: list[dict[str, Any]] = []
        self._url, self._key, self._certificate = url, key, certificate
        self._process: asyncio.subprocess.Process | None = None
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def secret(self) -> Mapping[str, Any]:
        return await self._ask({"op": "secret"})

    async def create(self, offer: str, session: Mapping[str, Any]) -> tuple[str, str]:
        made = await self._ask({"op": "create", "sdp": offer, "session": session})
        return made["answer"], made["location"].rpartition("/")[2]

    async def attach(self, call_id: str) -> None:
        await self._ask({"op": "attach", "call_id": call_id})

    async def send(self, event: Mapping[str, Any]) -> None:
        await self._ask({"op": "send", "event": event})

    async def hang_up(self, call_id: str) -> None:
        await self._ask({"op": "hang_up", "call_id": call_id})

    async def close(self) -> None:
        if self._process is not None:
            self._reading.cancel()
            self._process.kill()
            await self._process.wait()

    async def _start(self) -> asyncio.subprocess.Process:
        trusted = {"NODE_EXTRA_CA_CERTS": self._certificate} if self._certificate else {}
        process = await asyncio.create_subprocess_exec(
            str(browser.node()),
            str(_PROGRAM),
            self._url,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 20,  # bytes of a line
            env={**os.environ, **trusted, "OPENAI_API_KEY": self._key},
        )
        self._reading = asyncio.create_task(self._read(process))
        return process

    async def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Raises `RuntimeError` with what the package throws."""
        self._process = self._process or await self._start()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        answer = await self._answers.get()
        if "error" in answer:
            raise RuntimeError(f"{request['op']}: {answer['error']}")
        return answer

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            said = json.loads(line)
            if "event" in said:
                self.events.append(said["event"])
            else:
                self._answers.put_nowait(said)
