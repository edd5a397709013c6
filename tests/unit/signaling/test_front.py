import asyncio
from typing import cast

import pytest
from prometheus_client import CollectorRegistry
from starlette.requests import Request

from relayctl.wire.call_id import CallId
from signaling.access.access import Access, Caller
from signaling.calls import Calls
from signaling.fleet.control import Created
from signaling.fleet.location import Locator
from signaling.front import HEARD, LATE_S, Front, Room
from signaling.metrics import Metrics
from signaling.refusal import Refused

pytestmark = pytest.mark.anyio
LATE, MOST = 2, 4
NOW = 100.0
PATIENCE_S = 10.0


class HeldCalls:
    """Each call waits until it is told what becomes of it."""

    def __init__(self) -> None:
        self.held: list[asyncio.Future[Created]] = []

    async def create(self, *_: object, **__: object) -> Created:
        self.held.append(asyncio.get_running_loop().create_future())
        return await self.held[-1]


def request(waited_s: float | None = None) -> Request:
    state = {} if waited_s is None else {HEARD: NOW - waited_s}
    scope = {"type": "http", "headers": [], "client": ("198.51.100.7", 5), "state": state}
    return Request(scope)


def front(calls: HeldCalls) -> tuple[Front, Metrics]:
    metrics = Metrics(CollectorRegistry())
    room = Room(LATE, MOST)
    made = Front(cast(Calls, calls), Access(), Locator(), metrics, room, lambda: NOW)
    return made, metrics


def begin(at: Front) -> asyncio.Task[Created]:
    return asyncio.create_task(at.begin(request(), "openai", Caller(), "v=0", "realtime"))


@pytest.mark.parametrize("end", ["answered", "failed", "left"])
async def test_one_too_many_is_refused_until_another_has_ended(end: str) -> None:
    calls = HeldCalls()
    at, metrics = front(calls)
    under_way = [begin(at) for _ in range(MOST)]
    await asyncio.sleep(0)
    assert metrics.registry.get_sample_value("ferryline_signaling_offers_under_way") == MOST
    for asked in (at.admit(request()), begin(at)):
        with pytest.raises(Refused) as refused:
            await asyncio.wait_for(asked, PATIENCE_S)
        assert (refused.value.status, refused.value.code) == (503, "overloaded")
        assert refused.value.headers() == {"Retry-After": "1"}
    if end == "answered":
        calls.held[0].set_result(Created(CallId("a" * 24, "b" * 22), "v=0"))
    elif end == "failed":
        calls.held[0].set_exception(RuntimeError("broken"))
    else:
        under_way[0].cancel()
    await asyncio.gather(under_way[0], return_exceptions=True)
    assert await at.admit(request()) == Caller()
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
    assert metrics.registry.get_sample_value("ferryline_signaling_offers_under_way") == 0


@pytest.mark.parametrize(
    ("under_way", "waited_s", "refused"),
    [
        (LATE, LATE_S * 2, True),
        (LATE - 1, LATE_S * 2, False),
        (LATE, LATE_S / 2, False),  # it is the transceivers who are slow
        (LATE, None, False),
    ],
)
async def test_fewer_have_room_once_they_wait_for_us(
    under_way: int, waited_s: float | None, refused: bool
) -> None:
    at, _ = front(HeldCalls())
    tasks = [begin(at) for _ in range(under_way)]
    await asyncio.sleep(0)
    if refused:
        with pytest.raises(Refused):
            await at.admit(request(waited_s))
    else:
        assert await at.admit(request(waited_s)) == Caller()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
