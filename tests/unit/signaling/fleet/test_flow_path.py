import asyncio
from collections.abc import Callable, Coroutine

import httpx
import pytest

from signaling.fleet.flow_path import FlowPaths, Path, Sighting
from signaling.fleet.steering import Ingress

pytestmark = pytest.mark.anyio
VIP = ("203.0.113.10", 3478)
CLIENT = "198.51.100.4:6000"
FLOW = {"path": "kernel", "reason": None, "packets": {"up": 12, "down": 11}}
Handler = Callable[[httpx.Request], Coroutine[None, None, httpx.Response]]


def sites(*names: str) -> tuple[Ingress, ...]:
    return tuple(Ingress(name, (VIP,), (f"http://{name}:9100",)) for name in names)


def paths(handler: Handler, ingresses: tuple[Ingress, ...]) -> FlowPaths:
    return FlowPaths(httpx.AsyncClient(transport=httpx.MockTransport(handler)), ingresses)


async def test_asks_for_the_flow_of_the_client() -> None:
    asked = []

    async def handle(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(200, json=FLOW)

    seen = await paths(handle, sites("relay-a")).find(CLIENT, "203.0.113.10:3478")
    assert seen == Sighting(Path.KERNEL, None, "relay-a", {"up": 12, "down": 11})
    (url,) = asked
    assert url.startswith("http://relay-a:9100/v1/flows/198.51.100.4%3A6000?vip=203.0.113.10")


async def test_every_relay_of_an_ingress_is_asked() -> None:
    async def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=FLOW) if request.url.host == "b" else httpx.Response(404)

    site = (Ingress("site", (VIP,), ("http://a:9100", "http://b:9100")),)
    seen = await paths(handle, site).find(CLIENT, "203.0.113.10:3478")
    assert (seen.path, seen.ingress) == (Path.KERNEL, "site")


async def test_user_space_comes_with_its_reason() -> None:
    async def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={**FLOW, "path": "user", "reason": "socket_datapath"})

    seen = await paths(handle, sites("relay-a")).find(CLIENT, "203.0.113.10:3478")
    assert (seen.path, seen.reason) == (Path.USER, "socket_datapath")


async def test_of_several_relays_the_one_that_knows_the_flow_counts() -> None:
    async def handle(request: httpx.Request) -> httpx.Response:
        known = request.url.host == "relay-b"
        return httpx.Response(200, json=FLOW) if known else httpx.Response(404)

    seen = await paths(handle, sites("relay-a", "relay-b")).find(CLIENT, "203.0.113.10:3478")
    assert (seen.path, seen.ingress) == (Path.KERNEL, "relay-b")


@pytest.mark.parametrize(
    "reply",
    [
        httpx.Response(404),
        httpx.Response(500, text="oops"),
        httpx.Response(200, text="no json"),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"path": "kernel"}),
        httpx.Response(200, json={**FLOW, "path": "elsewhere"}),
        httpx.Response(200, json={**FLOW, "packets": 7}),
    ],
)
async def test_anything_else_is_unknown(reply: httpx.Response) -> None:
    async def handle(request: httpx.Request) -> httpx.Response:
        return reply

    assert await paths(handle, sites("relay-a")).find(CLIENT, "203.0.113.10:3478") == Sighting()


@pytest.mark.parametrize(
    ("client", "vip"),
    [(None, "203.0.113.10:3478"), (CLIENT, None), (CLIENT, "203.0.113.99:3478"), (5, "../x:1")],
)
async def test_without_a_flow_to_ask_for_nobody_is_asked(client: object, vip: object) -> None:
    async def handle(request: httpx.Request) -> httpx.Response:
        raise AssertionError("asked")

    assert await paths(handle, sites("relay-a")).find(client, vip) == Sighting()
    silent = (Ingress("relay-a", (VIP,)),)  # no admin
    assert await paths(handle, silent).find(CLIENT, "203.0.113.10:3478") == Sighting()


async def test_a_slow_relay_is_unknown_in_300_ms() -> None:
    async def handle(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(30)
        raise AssertionError("waited")

    async with asyncio.timeout(10):
        seen = await paths(handle, sites("relay-a")).find(CLIENT, "203.0.113.10:3478")
    assert seen == Sighting()
