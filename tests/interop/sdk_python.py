"""OpenAI's Python package, asynchronous."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from openai import AsyncOpenAI


class PythonSdk:
    """`certificate`: of the services, where they are https."""

    def __init__(self, url: str, key: str, certificate: str | None = None) -> None:
        self.events: list[dict[str, Any]] = []
        self._client = AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
        self._stack = contextlib.AsyncExitStack()
        self._reading: asyncio.Task[None] | None = None

    async def secret(self) -> Mapping[str, Any]:
        session: Any = {"type": "realtime", "model": "test-model"}
        made = await self._client.realtime.client_secrets.create(session=session)
        return made.to_dict()

    async def create(self, offer: str, session: Mapping[str, Any]) -> tuple[str, str]:
        given: Any = session
        response = await self._client.realtime.calls.create(sdp=offer, session=given)
        location = response.response.headers["location"]
        return response.text, location.rpartition("/")[2]

    async def attach(self, call_id: str) -> None:
        connecting = self._client.realtime.connect(call_id=call_id)
        self._connection = await self._stack.enter_async_context(connecting)
        self._reading = asyncio.create_task(self._read())

    async def send(self, event: Mapping[str, Any]) -> None:
        given: Any = event
        await self._connection.send(given)

    async def hang_up(self, call_id: str) -> None:
        await self._client.realtime.calls.hangup(call_id)

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        await self._stack.aclose()
        await self._client.close()

    async def _read(self) -> None:
        async for event in self._connection:
            self.events.append(event.to_dict())
