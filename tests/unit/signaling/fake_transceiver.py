"""A transceiver's control API without any media, and the fleet around it.

Calls live in a dictionary; what a test wants to see go wrong it sets on the fake.
"""

import random
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
    calls: int = 0
    ids: dict[str, str] = field(default_factory=dict)
    refusals: dict[str, Response] = field(default_factory=dict)
    seen: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[str | None] = field(default_factory=list)
    client: str | None = "198.51.100.4:6000"

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
        token = mint(KEY, Route(7, number, port, len(self.ids).to_bytes(3, "big")))
        text = call_id.CallId(token, SECRET).render()
        self.ids[text] = body["offer"]
        return JSONResponse({"id": text, "answer": ANSWER}, 201)

    async def _restart(self, request: Request) -> Response:
        await self._note("restart", request)
        return self._absent(request, "restart") or JSONResponse({"answer": ANSWER})

    async def _end(self, request: Request) -> Response:
        await self._note("end", request)
        return self._absent(request, "end") or Response(status_code=204)

    async def _describe(self, request: Request) -> Response:
        await self._note("describe", request)
        packets = {"up": 5, "down": 4}
        call = {"state": "connected", "client": self.client, "vip": VIP, "packets": packets}
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
        return body


class Silence(httpx.AsyncBaseTransport):
    """Nobody listens there."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"cannot connect for {request.url}", request=request)


def fleet(
    *transceivers: FakeTransceiver, admins: dict[str, httpx.AsyncBaseTransport] | None = None
) -> httpx.AsyncClient:
    """An HTTP client that reaches these transceivers and admins, and nothing else."""
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
    app = create_app(
        configuration(config),
        fleet(*transceivers, admins=admins),
        keys={KEY.id: KEY},
        dice=random.Random(1),
    )
    await app.state.registry.refresh()
    transport = httpx.ASGITransport(app, raise_app_exceptions=True)
    return app, httpx.AsyncClient(transport=transport, base_url="http://signaling")
