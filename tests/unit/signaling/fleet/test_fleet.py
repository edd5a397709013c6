import logging

import httpx
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from signaling.fleet.control import Control
from signaling.fleet.fleet import FleetWatch
from signaling.fleet.location import Place
from signaling.metrics import Metrics
from tests.unit.signaling.fake_transceiver import (
    CONFIG,
    ENDPOINT,
    FakeTransceiver,
    configuration,
    fleet,
)

pytestmark = pytest.mark.anyio


async def test_watches_while_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fleet")
    config = configuration(CONFIG.replace("id = 7", 'id = 7\nregion = "eu"'))
    metrics, draining = Metrics(CollectorRegistry()), httpx.MockTransport(lambda _: _drains())
    watch = FleetWatch(
        config,
        Control(fleet(FakeTransceiver())),
        httpx.AsyncClient(transport=draining),
        None,
        metrics,
        logging.getLogger("fleet"),
    )
    assert not any(each.ready for each in watch.fleet().transceivers)
    async with watch.watching():
        seen = watch.fleet()
    assert [(each.endpoint, each.ready) for each in seen.transceivers] == [(ENDPOINT, True)]
    assert seen.down == {"relay-a"}
    assert seen.places == {7: Place(region="eu")}
    assert {record.message for record in caplog.records} == {
        "transceiver 10.2.0.2:5000 is ready",
        "ingress relay-a says 503",
    }
    shown = generate_latest(metrics.registry).decode()
    for line in ("transceivers_ready 1.0", "ingresses_down 1.0", "registry_silent 0.0"):
        assert f"ferryline_signaling_{line}" in shown


def _drains() -> httpx.Response:
    return httpx.Response(503)
