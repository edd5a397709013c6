"""A transceiver's control API without any media, and the fleet around it.

Calls live in a dictionary; what a test wants to see go wrong it sets on the fake.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as HttpRoute

from relayctl.wire import address, call_id
from relayctl.wire.address import Address
from relayctl.wire.route_token import Key, Route, mint
from relayctl.wire.settings import load
from signaling.app import create_app
from signaling.config import SignalingConfig
from signaling.fleet.control_http import NoReply, Reply

KEY = Key(1, bytes(range(32)))
SECRET = "sEcReTsEcReTsEcReT-_09"
CONTROL_TOKEN = "control-token-of-the-tests"
OFFER = (
    "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"
    "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=ice-pwd:clientPasswordThatIsSecret\r\n"
)
ANSWER = OFFER.replace("clientPasswordThatIsSecret", "serverPasswordThatIsSecret")
ENDPOINT = ("10.2.0.2", 5000)
VIP = "203.0.113.10:3478"
CONFIG = f"""
keys_file = "/nowhere/route.keys"
control_token = "{CONTROL_TOKEN}"
[[transceiver]]
endpoint = "10.2.0.2:5000"
[[ingress]]
name = "relay-a"
vips = ["{VIP}"]
admin = "http://10.2.0.1:9100"
[[cluster]]
id = 7
allow = ["10.2.0.0/24"]
"""


def error(status: int, code: str, message: str, **headers: str) -> JSONResponse:
    param = "offer" if status in (400, 406) else None
    body = {"error": {"type": "t", "code": code, "message": message, "param": param}}
    return JSONResponse(body, status, headers)


@dataclass
class FakeTransceiver:
    """One process. `refusals` by method name: what is answered instead."""

    endpoint: Address = ENDPOINT
    ready: bool = True
    key: Key = KEY
    calls: int = 0
    ids: dict[str, str] = field(default_factory=dict)
    refusals: dict[str, Response] = field(default_factory=dict)
    seen: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[str | None] = field(default_factory=list)
    queries: list[dict[str, str]] = field(default_factory=list)
    client: str | None = "198.51.100.4:6000"
    state: str = "connected"
    answer: str = ANSWER
    version: int = 1  # of the latest answer
    client_ufrag: str = "abcd"

    def app(self) -> Starlette:
        one = "/v1/calls/{id}"
        return Starlette(
            routes=[
                HttpRoute("/readyz", self._readyz),
                HttpRoute("/v1/calls", self._create, methods=["POST"]),
                HttpRoute(f"{one}/restart", self._restart, methods=["POST"]),
                HttpRoute(one, self._end, methods=["DELETE"]),
                HttpRoute(one, self._describe, methods=["GET"]),
            ]
        )

    async def _readyz(self, request: Request) -> Response:
        return JSONResponse({"calls": self.calls, "capacity": 10}, 200 if self.ready else 503)

    async def _create(self, request: Request) -> Response:
        body = await self._note("create", request)
        if refusal := self.refusals.get("create"):
            return refusal
        host, port = self.endpoint
        number = int.from_bytes(map(int, host.split(".")), "big")
        token = mint(self.key, Route(7, number, port, len(self.ids).to_bytes(3, "big")))
        text = call_id.CallId(token, SECRET).render()
        self.ids[text] = body["offer"]
        return JSONResponse({"id": text, "answer": self.answer}, 201)

    async def _restart(self, request: Request) -> Response:
        body = await self._note("restart", request)
        if refusal := self._absent(request, "restart"):
            return refusal
        self.version += 1
        self.client_ufrag = body.get("ice", {}).get("ufrag", self.client_ufrag)
        return JSONResponse({"answer": self.answer.replace("o=- 1 1 ", f"o=- 1 {self.version} ")})

    async def _end(self, request: Request) -> Response:
        await self._note("end", request)
        return self._absent(request, "end") or Response(status_code=204)

    async def _describe(self, request: Request) -> Response:
        await self._note("describe", request)
        packets = {"up": 5, "down": 4}
        call: dict[str, Any] = {
            "state": self.state,
            "client": self.client,
            "vip": VIP,
            "packets": packets,
        }
        call |= {"version": self.version, "client_ufrag": self.client_ufrag}
        return self._absent(request, "describe") or JSONResponse(call)

    def _absent(self, request: Request, method: str) -> Response | None:
        if refusal := self.refusals.get(method):
            return refusal
        if request.path_params["id"] not in self.ids:
            return error(404, "call_not_found", "no such call")
        return None

    async def _note(self, method: str, request: Request) -> Any:
        body = await request.json() if request.method == "POST" else None
        self.seen.append((method, request.url.path, body))
        self.headers.append(request.headers.get("authorization"))
        self.queries.append(dict(request.query_params))
        return body


class Silence(httpx.AsyncBaseTransport):
    """Nobody listens there."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"cannot connect for {request.url}", request=request)


class Through:
    """What `ControlHttp` does, by a client of a test's making."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def ask(
        self,
        method: str,
        endpoint: Address,
        path: str,
        *,
        headers: Mapping[str, str],
        content: bytes,
        timeout_s: float,
    ) -> Reply:
        url = f"http://{address.render(endpoint)}{path}"
        try:
            reply = await self._client.request(
                method, url, headers=headers, content=content, timeout=timeout_s
            )
        except httpx.HTTPError as error:
            raise NoReply(type(error).__name__) from None
        return Reply(reply.status_code, reply.headers, reply.content)

    def close(self) -> None:
        """The client is closed by whoever made it."""


def fleet(*transceivers: FakeTransceiver) -> Through:
    """The way to these transceivers, and to nobody else."""
    return Through(transceiver_client(*transceivers))


def transceiver_client(
    *transceivers: FakeTransceiver, admins: dict[str, httpx.AsyncBaseTransport] | None = None
) -> httpx.AsyncClient:
    """It reaches these transceivers and admins, and nothing else."""
    mounts: dict[str, httpx.AsyncBaseTransport] = {
        f"http://{address.render(each.endpoint)}": httpx.ASGITransport(each.app())
        for each in transceivers
    }
    return httpx.AsyncClient(transport=Silence(), mounts={**mounts, **(admins or {})})


def configuration(text: str = CONFIG) -> SignalingConfig:
    return load(SignalingConfig, toml=text)


async def signaling(
    *transceivers: FakeTransceiver,
    config: str = CONFIG,
    admins: dict[str, httpx.AsyncBaseTransport] | None = None,
) -> tuple[FastAPI, httpx.AsyncClient]:
    """The application with readiness known, and a client of it."""
    client = transceiver_client(*transceivers, admins=admins)
    app = create_app(
        configuration(config),
        client,
        exchange=Through(client),
        keys={KEY.id: KEY},
        dice=random.Random(1),
    )
    await app.state.registry.refresh()
    transport = httpx.ASGITransport(app, raise_app_exceptions=True)
    return app, httpx.AsyncClient(transport=transport, base_url="http://signaling")
