import asyncio

import httpx
import pytest

from signaling.fleet.ingress_health import IngressHealth
from signaling.fleet.steering import Ingress

pytestmark = pytest.mark.anyio
VIPS = (("203.0.113.10", 3478),)


class Relays(httpx.AsyncBaseTransport):
    """Status by host; None does not answer."""

    def __init__(self, **status: int | None) -> None:
        self.status = status

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        status = self.status[request.url.host]
        if status is None:
            raise httpx.ConnectError("nobody")
        return httpx.Response(status)


def health(relays: Relays, told: list[tuple[str, str]]) -> IngressHealth:
    client = httpx.AsyncClient(transport=relays)
    sites = [Ingress(name, VIPS, health=(f"http://{name}/readyz",)) for name in relays.status]
    sites.append(Ingress("unasked", VIPS))
    return IngressHealth(client, sites, lambda ingress, fault: told.append((ingress.name, fault)))


async def test_who_says_no_is_down_at_once() -> None:
    relays, told = Relays(a=503, b=200), list[tuple[str, str]]()
    asked = health(relays, told)
    assert asked.down == set()
    await asked.refresh()
    await asked.refresh()
    assert asked.down == {"a"}
    relays.status["a"] = 200
    await asked.refresh()
    assert asked.down == set()
    assert told == [("a", "says 503"), ("a", "")]


async def test_who_does_not_answer_is_down_the_second_time() -> None:
    relays, told = Relays(a=None), list[tuple[str, str]]()
    asked = health(relays, told)
    await asked.refresh()
    assert asked.down == set()
    relays.status["a"] = 200
    await asked.refresh()
    relays.status["a"] = None
    await asked.refresh()
    assert asked.down == set()
    await asked.refresh()
    assert asked.down == {"a"}
    assert told == [("a", "does not answer")]


async def test_of_several_relays_one_is_enough() -> None:
    relays, told = Relays(a=503, b=200), list[str]()
    both = Ingress("ab", VIPS, health=("http://a/readyz", "http://b/readyz"))
    client = httpx.AsyncClient(transport=relays)
    asked = IngressHealth(client, [both], lambda ingress, fault: told.append(fault))
    await asked.refresh()
    assert asked.down == set()
    relays.status["b"] = None
    await asked.refresh()
    await asked.refresh()
    assert asked.down == {"ab"}
    relays.status["a"] = 200
    await asked.refresh()
    assert asked.down == set()
    assert told == ["says 503, does not answer", ""]


async def test_one_that_hangs_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signaling.fleet.ingress_health.DEADLINE_S", 0.05)

    class Hanging(Relays):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.host == "a":
                await asyncio.sleep(3600)
            return await super().handle_async_request(request)

    asked = health(Hanging(a=200, b=503), [])
    await asked.refresh()
    await asked.refresh()
    assert asked.down == {"a", "b"}


async def test_run_keeps_asking_until_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signaling.fleet.ingress_health.INTERVAL_S", 0.01)
    changed = asyncio.Event()
    relays = Relays(a=200)
    client = httpx.AsyncClient(transport=relays)
    site = Ingress("a", VIPS, health=("http://a/readyz",))
    asked = IngressHealth(client, [site], lambda ingress, fault: changed.set())
    running = asyncio.create_task(asked.run())
    relays.status["a"] = 503
    async with asyncio.timeout(5):
        await changed.wait()
    assert asked.down == {"a"}
    running.cancel()
