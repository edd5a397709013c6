"""No log of any service has a secret: at debug level, with keys and Redis, in calls that go well
and in calls that do not.

What is secret is collected while it is used. Redis and the model are not ours; theirs are not read.
"""

import asyncio
import contextlib
import json
import re
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import aioice.ice
import httpx
import pytest
import websockets.asyncio.client
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from websockets.exceptions import InvalidStatus

from relayctl.wire.call_id import parse
from signaling.access import api_keys
from signaling.access.api_keys import ApiKey, digest_of
from tests.clients.aiortc_client import SpeechTrack
from tests.lab import speech
from tests.lab.conftest import PREFIX
from tests.lab.redis_server import RedisServer
from tests.lab.services import Services
from tests.lab.site import LoopbackPlace

PORTS = 27478
MODEL_PORT = 27498
SDP = {"Content-Type": "application/sdp"}
CALLS = "/v1/realtime/calls"
PATIENCE_S = 30.0
PIECE = 12  # characters
OURS = ("relay", "transceiver", "signaling")
FORGED = f"rtc_{'A' * 24}_"


@dataclass
class Secrets:
    """What was used, and what for."""

    known: dict[str, str] = field(default_factory=dict)

    def new(self, what: str, prefix: str = "") -> str:
        return self.add(what, prefix + secrets.token_urlsafe(24))

    def add(self, what: str, text: str) -> str:
        assert len(text) >= PIECE
        self.known[text] = what
        return text

    def call(self, call_id: str) -> None:
        self.add("second half of a call id", parse(call_id).secret)

    def description(self, whose: str, sdp: str) -> None:
        for password in re.findall(r"a=ice-pwd:(\S+)", sdp):
            self.add(f"ICE password of the {whose}", password)

    def in_text(self, text: str) -> list[str]:
        """What of it stands there, or a piece: libraries cut what is long."""
        return [
            what
            for secret, what in self.known.items()
            if any(secret[at : at + PIECE] in text for at in range(len(secret) - PIECE + 1))
        ]


@dataclass
class Scene:
    services: Services
    redis: RedisServer
    secrets: Secrets
    shop: str  # API keys
    bank: str

    @property
    def base(self) -> str:
        return self.services.site.base_url

    @property
    def socket(self) -> str:
        return self.base.replace("http", "ws", 1) + "/v1/realtime"


@pytest.fixture(scope="module")
def logs(monkeypatch_module: pytest.MonkeyPatch) -> Iterator[tuple[Secrets, dict[str, str]]]:
    """Everything that goes on, and what the services have to say about it."""
    monkeypatch_module.setattr(
        aioice.ice, "get_host_addresses", lambda use_ipv4, use_ipv6: ["127.0.0.1"]
    )
    known = Secrets()
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(LoopbackPlace(f"{PREFIX}secrets", PORTS))
        redis = stack.enter_context(RedisServer(password=known.new("password of Redis")))
        shop, bank = (known.new("API key", api_keys.PREFIX) for _ in range(2))
        key = known.new("key of the model")
        services = Services(
            place.site(),
            datapath="socket",
            backend="realtime",
            model={"url": f"ws://127.0.0.1:{MODEL_PORT}/v1/realtime?key={key}", "model": "m"},
            redis=redis.url,
            api_keys=(ApiKey("shop", digest_of(shop), 0), ApiKey("bank", digest_of(bank), 0)),
            log_level="debug",
        )
        known.add("control token", services.setup.control_token)
        known.add("route key", services.setup.key.secret.hex())
        model = ["--host", "127.0.0.1", "--port", str(MODEL_PORT), "--script", '{"reply_s": 1.0}']
        services.site.transceiver.python("model", "tests.realtime_server", *model)
        stack.enter_context(services)
        asyncio.run(happen(Scene(services, redis, known, shop, bank)))
        services.stop()
        directory = services.site.directory
        yield known, {name: (directory / f"{name}.log").read_text() for name in OURS}


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


async def happen(scene: Scene) -> None:
    async with httpx.AsyncClient(base_url=scene.base, trust_env=False, timeout=20) as http:
        await wrong_keys(scene, http)
        location = await a_call(scene, http)
        await nonsense(scene, http, location)
        await crashes(scene, http, location)


async def wrong_keys(scene: Scene, http: httpx.AsyncClient) -> None:
    known = scene.secrets
    for key in (known.new("wrong key", "sk-fl-"), known.new("wrong key", "ek_")):
        headers = SDP | bearer(key)
        assert (await http.post(CALLS, content="v=0", headers=headers)).status_code == 401
        assert (await http.post("/v1/realtime/client_secrets", headers=headers)).status_code in (
            401,
            403,
        )
        await refused(scene, f"?call_id={FORGED}{known.new('forged half')[:22]}", key)
    basic = {"Authorization": f"Basic {known.new('basic credentials')}"}
    assert (await http.post(CALLS, content="v=0", headers=SDP | basic)).status_code == 401
    key = known.new("key in a query", "sk-fl-")
    reply = await http.post(f"{CALLS}?key={key}&api_key={key}", content="v=0", headers=SDP)
    assert reply.status_code == 401


async def a_call(scene: Scene, http: httpx.AsyncClient) -> str:
    """With a session, a sideband and its end; its location."""
    known = scene.secrets
    instructions = known.new("instructions of a key")
    session = {"type": "realtime", "instructions": instructions}
    reply = await http.post(
        "/v1/realtime/client_secrets", json={"session": session}, headers=bearer(scene.shop)
    )
    assert reply.status_code == 200, reply.text
    key = known.add("ephemeral key", reply.json()["value"])

    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    pc.addTrack(SpeechTrack(speech.read(speech.SPOKEN)))
    channel = pc.createDataChannel("oai-events")
    told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    channel.on("message", lambda text: told.put_nowait(json.loads(text)))
    try:
        await pc.setLocalDescription(await pc.createOffer())
        known.description("client", pc.localDescription.sdp)
        reply = await http.post(
            f"{CALLS}?model=m", content=pc.localDescription.sdp, headers=SDP | bearer(key)
        )
        assert reply.status_code == 201, reply.text
        location = str(reply.headers["location"])
        call_id = location.rpartition("/")[2]
        known.call(call_id)
        known.description("transceiver", reply.text)
        await pc.setRemoteDescription(RTCSessionDescription(reply.text, "answer"))
        created = await told_of(told, "session.created")
        assert created["session"]["instructions"] == instructions
        assert created["session"]["expires_at"] > 0  # how long it may last is said

        update = known.new("instructions of the client")
        channel.send(json.dumps(update_to(update)))
        while (await told_of(told, "session.updated"))["session"]["instructions"] != update:
            pass
        await sideband(scene, call_id)
        for path in ("", "/path"):
            assert (await http.get(location + path)).status_code == 200
        reply = await http.post(location, content=pc.localDescription.sdp, headers=SDP)
        known.description("transceiver", reply.text)
        for shown, status in ((key, 403), (scene.bank, 404), (scene.shop, 200)):
            reply = await http.post(f"{location}/hangup", headers=bearer(shown))
            assert reply.status_code == status, (status, reply.text)
        assert (await http.get(location)).json()["state"] == "ended"
    finally:
        await pc.close()
    return location


async def sideband(scene: Scene, call_id: str) -> None:
    """The key as browsers show it."""
    protocols: Any = ["realtime", f"openai-insecure-api-key.{scene.shop}"]
    url = f"{scene.socket}?call_id={call_id}"
    async with (
        websockets.asyncio.client.connect(url, subprotocols=protocols, proxy=None) as socket,
        asyncio.timeout(PATIENCE_S),
    ):
        assert json.loads(await socket.recv())["type"] == "session.created"
        update = scene.secrets.new("instructions of the sideband")
        await socket.send(json.dumps(update_to(update)))
        while update not in str(await socket.recv()):
            pass
    await refused(scene, f"?call_id={call_id}", scene.bank)


async def nonsense(scene: Scene, http: httpx.AsyncClient, location: str) -> None:
    """Secrets at places that nothing can be made of."""
    known = scene.secrets
    key = known.new("key in nonsense", "sk-fl-")
    for content in (f"v=0\r\na=ice-pwd:{known.new('password in a bad offer')}\r\n", "\xff"):
        reply = await http.post(CALLS, content=content, headers=SDP | bearer(scene.shop))
        assert reply.status_code == 400
    await http.post(
        CALLS,
        content=json.dumps({"session": {"instructions": known.new("instructions in a bad form")}}),
        headers=bearer(scene.shop) | {"Content-Type": "multipart/form-data; boundary=x"},
    )
    await http.get(f"/{location}/x?call_id={location}", headers=bearer(scene.shop))
    for text in (
        f"GET /{key} HTTP/9\r\nAuthorization: Bearer {key}\r\n\r\n",
        f"GET /v1/realtime?key={key} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
        f"Upgrade: websocket\r\nSec-WebSocket-Protocol: openai-insecure-api-key.{key}\r\n\r\n",
        f"GET /v1/realtime?key={key} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
        f"Upgrade: h2c\r\nAuthorization: {key}\r\n\r\n",
        f"POST /v1/realtime/calls?{key} HTTP/1.1\r\n"
        f"Authorization: Bearer {key}\r\nContent-Length: x\r\n\r\n",
    ):
        await asyncio.to_thread(raw, scene, text.encode())


async def crashes(scene: Scene, http: httpx.AsyncClient, location: str) -> None:
    """Redis, then the model, then the transceiver is gone; and comes back."""
    services = scene.services
    body = {"session": {"instructions": scene.secrets.new("instructions for nobody")}}
    scene.redis.kill()
    for path, shown in (("/v1/realtime/client_secrets", scene.shop), (CALLS, "ek_" + "x" * 32)):
        reply = await http.post(path, json=body, headers=bearer(shown))
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "keys_unavailable")
    scene.redis.start()
    services.transceiver.kill()
    for method, path in (("GET", ""), ("GET", "/path"), ("POST", "/hangup")):
        reply = await http.request(method, location + path, headers=bearer(scene.shop))
        assert reply.status_code == 502, reply.text
    old = location.rpartition("/")[2]
    await refused(scene, f"?call_id={old}", scene.shop)
    services.start_transceiver()
    path = f"{CALLS}?resume={old}"
    reply = await http.post(path, content="v=0\r\n", headers=SDP | bearer(scene.shop))
    assert reply.status_code >= 400
    reply = await http.get(location)
    assert reply.status_code == 404


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def update_to(instructions: str) -> dict[str, Any]:
    return {
        "type": "session.update",
        "session": {"type": "realtime", "instructions": instructions},
    }


async def told_of(told: asyncio.Queue[dict[str, Any]], kind: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        while (event := await told.get())["type"] != kind:
            pass
    return event


async def refused(scene: Scene, query: str, key: str) -> None:
    """A WebSocket that is not opened."""
    protocols: Any = [f"openai-insecure-api-key.{key}"]
    with pytest.raises(InvalidStatus):
        await websockets.asyncio.client.connect(
            scene.socket + query, subprotocols=protocols, proxy=None
        )


def raw(scene: Scene, data: bytes) -> None:
    address = scene.services.site.signaling_address
    with socket.create_connection(address, 5) as sock, contextlib.suppress(OSError):
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1000)


@pytest.mark.parametrize("service", OURS)
def test_no_log_has_a_secret(logs: tuple[Secrets, dict[str, str]], service: str) -> None:
    known, texts = logs
    found = {
        what: [line for line in texts[service].splitlines() if known.in_text(line) == [what]][:3]
        for what in known.in_text(texts[service])
    }
    assert not found


def test_everything_did_happen(logs: tuple[Secrets, dict[str, str]]) -> None:
    known, texts = logs
    assert {"ICE password of the client", "ICE password of the transceiver"} <= set(
        known.known.values()
    )
    for line in (
        f"POST {CALLS} 201",
        f"POST {CALLS} 401",
        f"POST {CALLS} 503",
        f"POST {CALLS}/{{call_id}}/hangup 200",
        "WEBSOCKET /v1/realtime 101",
        "WEBSOCKET /v1/realtime 401",
        "WEBSOCKET /v1/realtime 404",
        "WEBSOCKET /v1/realtime 502",
        "POST /v1/realtime/client_secrets 200",
    ):
        assert line in texts["signaling"], line
    for service in ("signaling", "transceiver"):
        assert " DEBUG " in texts[service]
        assert "Traceback" not in texts[service]
    assert texts["relay"]
