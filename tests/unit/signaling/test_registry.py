import asyncio

import pytest

from relayctl.wire.cluster import Clusters
from signaling.control import Control
from signaling.registry import Registry
from signaling.steering import FULL, Transceiver
from tests.unit.signaling.fake_transceiver import (
    ENDPOINT,
    FakeTransceiver,
    configuration,
    fleet,
)

pytestmark = pytest.mark.anyio
CLUSTERS: Clusters = configuration().routing()


def registry(fake: FakeTransceiver, seen: list[Transceiver]) -> Registry:
    return Registry(Control(fleet(fake)), [ENDPOINT], CLUSTERS, seen.append)


async def test_nobody_is_ready_before_being_asked() -> None:
    (transceiver,) = registry(FakeTransceiver(), []).transceivers()
    assert transceiver == Transceiver(ENDPOINT, 7, ready=False)


async def test_refresh_tells_changes_once() -> None:
    fake, seen = FakeTransceiver(calls=3), list[Transceiver]()
    asked = registry(fake, seen)
    await asked.refresh()
    await asked.refresh()
    fake.ready = False
    await asked.refresh()
    assert [(each.ready, each.load) for each in seen] == [(True, 0.3), (False, 0.3)]


async def test_out_holds_until_the_next_refresh() -> None:
    asked = registry(FakeTransceiver(), [])
    await asked.refresh()
    asked.out(ENDPOINT, full=True)
    assert [(each.ready, each.load) for each in asked.transceivers()] == [(False, FULL)]
    await asked.refresh()
    assert [(each.ready, each.load) for each in asked.transceivers()] == [(True, 0.0)]


async def test_run_keeps_asking_until_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signaling.registry.INTERVAL_S", 0.01)
    fake, changed = FakeTransceiver(ready=False), asyncio.Event()
    control = Control(fleet(fake))
    asked = Registry(control, [ENDPOINT], CLUSTERS, lambda transceiver: changed.set())
    running = asyncio.create_task(asked.run())
    await asyncio.sleep(0.05)
    assert not changed.is_set()
    fake.ready = True
    async with asyncio.timeout(5):
        await changed.wait()
    running.cancel()
