import pytest

from tests.unit.signaling.fake_transceiver import OFFER, FakeTransceiver, signaling

pytestmark = pytest.mark.anyio


async def test_healthz_does_not_depend_on_anybody() -> None:
    _, client = await signaling()
    assert (await client.get("/healthz")).status_code == 200


async def test_readyz_follows_the_transceivers() -> None:
    fake = FakeTransceiver()
    app, client = await signaling(fake)
    assert (await client.get("/readyz")).status_code == 200
    fake.ready = False
    await app.state.registry.refresh()
    reply = await client.get("/readyz")
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "no_transceiver")
    assert reply.headers["retry-after"] == "1"


async def test_metrics() -> None:
    _, client = await signaling(FakeTransceiver())
    sdp = {"Content-Type": "application/sdp"}
    await client.post("/v1/realtime/calls", content=OFFER, headers=sdp)
    await client.post("/v1/realtime/calls", content="", headers=sdp)
    await client.get("/nowhere")
    text = (await client.get("/metrics")).text
    for line in (
        'ferryline_signaling_requests_total{face="openai",status="201"} 1.0',
        'ferryline_signaling_requests_total{face="openai",status="400"} 1.0',
        'ferryline_signaling_requests_total{face="none",status="404"} 1.0',
        'ferryline_signaling_setup_seconds_count{face="openai"} 1.0',
        "ferryline_signaling_transceivers_ready 1.0",
    ):
        assert line in text
