import logging

import httpx
import pytest
from prometheus_client import CollectorRegistry
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, Router, WebSocketRoute
from starlette.types import Message
from starlette.websockets import WebSocket

from signaling.http.request_log import RequestLog
from signaling.metrics import Metrics

pytestmark = pytest.mark.anyio
SECRET = "abcdefghijklmnopqrst-_"
CALL = f"rtc_{'a' * 24}"


async def good(request: Request) -> PlainTextResponse:
    return PlainTextResponse("good")


async def broken(request: Request) -> PlainTextResponse:
    raise RuntimeError("broken")


async def left(request: Request) -> PlainTextResponse:
    raise ClientDisconnect


def client(metrics: Metrics | None = None) -> httpx.AsyncClient:
    routes = [Route("/{call_id}/good", good), Route("/broken", broken), Route("/left", left)]
    app = RequestLog(
        Router(routes),
        metrics=metrics or Metrics(CollectorRegistry()),
        log=logging.getLogger("signaling"),
    )
    transport = httpx.ASGITransport(app, client=("198.51.100.77", 5))
    return httpx.AsyncClient(transport=transport, base_url="http://x")


@pytest.mark.parametrize("given", ["abc-1.2_3", "a" * 64])
async def test_a_request_id_is_echoed(given: str) -> None:
    reply = await client().get("/x/good", headers={"X-Request-Id": given})
    assert reply.headers["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["", "a" * 65, "a b", "a,b"])
async def test_an_odd_request_id_is_replaced(given: str) -> None:
    reply = await client().get("/x/good", headers={"X-Request-Id": given})
    assert len(reply.headers["X-Request-Id"]) == 32


async def test_the_line_has_the_public_half_and_a_masked_client(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, "signaling"):
        await client().get(f"/{CALL}_{SECRET}/good", headers={"X-Request-Id": "r1"})
    (record,) = caplog.records
    line = record.getMessage()
    assert f"request=r1 call={CALL} client=198.51.100.0/24" in line
    assert SECRET not in line


async def test_behind_a_proxy_the_line_has_the_client_of_the_proxy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = RequestLog(
        Router([Route("/good", good)]),
        metrics=Metrics(CollectorRegistry()),
        log=logging.getLogger("signaling"),
        client_of=lambda request: request.headers["x-forwarded-for"],
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as asks:
        with caplog.at_level(logging.DEBUG, "signaling"):
            await asks.get("/good", headers={"X-Forwarded-For": "203.0.113.9"})
    assert "client=203.0.113.0/24" in caplog.text


async def test_broken_code_is_an_answer_with_the_request_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics(CollectorRegistry())
    reply = await client(metrics).get("/broken", headers={"X-Request-Id": "r2"})
    assert reply.status_code == 500
    assert reply.json()["error"]["code"] == "internal_error"
    assert "r2" in reply.json()["error"]["message"]
    assert "RuntimeError: broken" in caplog.text
    labels = {"face": "none", "status": "500"}
    assert metrics.registry.get_sample_value("ferryline_signaling_requests_total", labels) == 1


async def test_a_client_that_left_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics(CollectorRegistry())
    with pytest.raises(AssertionError):  # httpx's transport got no response
        await client(metrics).get("/left")
    labels = {"face": "none", "status": "499"}
    assert metrics.registry.get_sample_value("ferryline_signaling_requests_total", labels) == 1
    assert "Traceback" not in caplog.text


async def talk(peer: WebSocket) -> None:
    await peer.accept("realtime")
    await peer.close()


async def breaks(peer: WebSocket) -> None:
    if "late" in peer.query_params:
        await peer.accept()
    raise RuntimeError("broken")


async def refuses(peer: WebSocket) -> None:
    await PlainTextResponse("no", 401)(peer.scope, peer.receive, peer.send)


async def closes(peer: WebSocket) -> None:
    await peer.close()


async def over_websocket(path: str, query: str = "") -> list[Message]:
    """What the server is told to send."""
    routes = [
        WebSocketRoute(f"/{endpoint.__name__}", endpoint)
        for endpoint in (talk, breaks, refuses, closes)
    ]
    app = RequestLog(
        Router(routes),
        metrics=Metrics(CollectorRegistry()),
        log=logging.getLogger("signaling"),
    )
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "websocket",
        "path": path,
        "query_string": query.encode(),
        "headers": [(b"x-request-id", b"r3")],
        "client": ("198.51.100.77", 5),
        "extensions": {"websocket.http.response": {}},
    }
    await app(scope, receive, send)
    return sent


@pytest.mark.parametrize(
    ("path", "status"), [("/talk", 101), ("/refuses", 401), ("/closes", 403), ("/breaks", 500)]
)
async def test_a_websocket_has_one_line(
    caplog: pytest.LogCaptureFixture, path: str, status: int
) -> None:
    with caplog.at_level(logging.INFO, "signaling"):
        sent = await over_websocket(path, f"call_id={CALL}_{SECRET}")
    record = caplog.records[-1]
    assert len(caplog.records) == 1 + (status == 500)
    line = record.getMessage()
    assert line.startswith(f"WEBSOCKET {path} {status} ")
    assert f"request=r3 call={CALL} client=198.51.100.0/24" in line
    assert SECRET not in caplog.text
    if status != 403:
        assert (b"x-request-id", b"r3") in sent[0]["headers"]


async def test_a_websocket_whose_code_breaks_is_closed() -> None:
    sent = await over_websocket("/breaks", "late")
    assert [message["type"] for message in sent] == ["websocket.accept", "websocket.close"]
    assert sent[-1]["code"] == 1011
