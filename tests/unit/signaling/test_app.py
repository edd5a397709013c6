import contextlib
import io
import json
import logging

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry import trace

from signaling.redaction import Redacted
from tests.unit.signaling.fake_transceiver import (
    CONFIG,
    CONTROL_TOKEN,
    OFFER,
    SECRET,
    FakeTransceiver,
    error,
    signaling,
)

pytestmark = pytest.mark.anyio
CALLS = "/v1/realtime/calls"
SDP = {"Content-Type": "application/sdp"}
JSON = {"Content-Type": "application/json"}
REGIONAL = CONFIG.replace("id = 7", 'id = 7\nregion = "eu"')


def code(reply: httpx.Response) -> str:
    body = reply.json()
    assert set(body["error"]) == {"type", "code", "message", "param"}
    assert body["error"]["message"]
    return str(body["error"]["code"])


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", "/nowhere", 404, "no_such_route"),
        ("GET", "/../etc/passwd", 404, "no_such_route"),
        ("PUT", CALLS, 405, "method_not_allowed"),
        ("GET", f"{CALLS}/", 404, "no_such_route"),
    ],
)
async def test_the_router_refuses_in_the_same_shape(
    method: str, path: str, status: int, reason: str
) -> None:
    _, client = await signaling(FakeTransceiver())
    reply = await client.request(method, path)
    assert (reply.status_code, code(reply)) == (status, reason)
    assert ("allow" in reply.headers) == (status == 405)


async def test_a_preflight_of_a_realtime_client() -> None:
    _, client = await signaling(FakeTransceiver())
    reply = await client.options(
        CALLS,
        headers={
            "Origin": "https://talk.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,openai-beta,x-openai-agents-sdk",
        },
    )
    assert reply.status_code == 200
    assert reply.headers["access-control-allow-origin"] == "*"
    allowed = reply.headers["access-control-allow-headers"].lower()
    assert all(name in allowed for name in ("authorization", "content-type", "x-openai-agents-sdk"))
    for method in ("POST", "PATCH", "DELETE"):
        assert method in reply.headers["access-control-allow-methods"]


async def test_location_and_errors_can_be_read_across_origins() -> None:
    _, client = await signaling(FakeTransceiver())
    origin = {"Origin": "https://talk.example"}
    for body, status in ((OFFER, 201), ("x", 400)):
        reply = await client.post(CALLS, content=body, headers=SDP | origin)
        assert reply.status_code == status
        assert reply.headers["access-control-allow-origin"] == "*"
        assert "location" in reply.headers["access-control-expose-headers"].lower()


async def test_a_begun_call_says_where_it_went_on_every_face() -> None:
    _, client = await signaling(
        FakeTransceiver(), config='trusted_proxies = ["127.0.0.0/8"]' + REGIONAL
    )
    here = {"X-Ferryline-Region": "eu", "Origin": "https://talk.example"}
    for path, kind, body in (
        (CALLS, SDP, OFFER),
        ("/whip", SDP, OFFER),
        ("/offer", JSON, json.dumps({"type": "offer", "sdp": OFFER})),
        ("/api/offer", JSON, json.dumps({"type": "offer", "sdp": OFFER})),
    ):
        reply = await client.post(path, content=body, headers=here | kind)
        assert reply.status_code in (200, 201), reply.text
        assert reply.headers["x-ferryline-ingress"] == "relay-a"
        steering = "location=region cluster=7 ingress=relay-a reason=nearest"
        assert reply.headers["x-ferryline-steering"] == steering
        exposed = reply.headers["access-control-expose-headers"].lower()
        assert "x-ferryline-ingress, x-ferryline-steering" in exposed
    figures = (await client.get("/metrics")).text
    labels = 'cluster="7",ingress="relay-a",reason="nearest"'
    assert f"ferryline_signaling_steered_total{{{labels}}} 4.0" in figures


async def test_origins_can_be_narrowed() -> None:
    config = 'cors_origins = ["https://talk.example"]' + CONFIG
    _, client = await signaling(FakeTransceiver(), config=config)
    reply = await client.post(CALLS, content="", headers=SDP | {"Origin": "https://other.example"})
    assert "access-control-allow-origin" not in reply.headers


async def test_no_secret_reaches_a_log() -> None:
    """Everything at debug level, libraries included, through the formatter of the service."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(Redacted((CONTROL_TOKEN,)))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        fake = FakeTransceiver()
        _, client = await signaling(fake)
        location = (await client.post(CALLS, content=OFFER, headers=SDP)).headers["location"]
        await client.post(location, content=OFFER, headers=SDP)
        await client.get(f"{location}/path")
        fake.refusals["describe"] = error(500, "x", "y")
        await client.get(location)
        _, alone = await signaling()  # the owner is gone
        assert (await alone.delete(location)).status_code == 502
        await client.delete(location)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    text = written.getvalue()
    assert f"{CALLS}/{{call_id}} 200" in text  # it was written at all
    assert "POST http://10.2.0.2:5000/v1/calls" in text  # and by httpx too
    for secret in (SECRET, CONTROL_TOKEN, "PasswordThatIsSecret"):
        assert secret not in text


OFFERS = st.binary(max_size=300) | st.text(max_size=300).map(
    lambda rest: (OFFER + rest).encode("utf-8", "surrogatepass")
)
LIMITS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@LIMITS
@given(body=OFFERS)
async def test_no_sdp_makes_a_500(body: bytes) -> None:
    _, client = await signaling(FakeTransceiver())
    reply = await client.post(CALLS, content=body, headers=SDP)
    assert reply.status_code in (201, 400)
    if reply.status_code == 400:
        assert code(reply) == "bad_sdp"


@LIMITS
@given(
    body=OFFERS
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.just("offer"),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["sdp", "type", "x"]), inner)
        ),
        max_leaves=8,
    ).map(lambda value: __import__("json").dumps(value).encode())
)
async def test_no_json_makes_a_500(body: bytes) -> None:
    _, client = await signaling(FakeTransceiver())
    reply = await client.post("/offer", content=body, headers=JSON)
    assert reply.status_code in (200, 400)
    if reply.status_code == 400:
        assert code(reply) in ("bad_json", "bad_sdp")


@LIMITS
@given(text=st.text(min_size=1, max_size=60))
async def test_no_call_id_makes_a_500(text: str) -> None:
    _, client = await signaling(FakeTransceiver())
    with contextlib.suppress(httpx.InvalidURL, UnicodeEncodeError):
        reply = await client.get(f"{CALLS}/{text}")
        assert reply.status_code in (404, 405)


async def test_no_trace_of_a_request_is_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path holds a call's secret."""
    asked = []

    class Provider(trace.TracerProvider):
        def get_tracer(self, *_: object, **__: object) -> trace.Tracer:
            asked.append(True)
            return trace.NoOpTracer()

    monkeypatch.setattr(trace, "get_tracer_provider", Provider)
    _, client = await signaling(FakeTransceiver())
    await client.get(f"{CALLS}/x")
    assert not asked


async def test_the_lifespan_asks_and_closes() -> None:
    app, _ = await signaling(FakeTransceiver())
    async with app.router.lifespan_context(app):
        assert all(each.ready for each in app.state.registry.transceivers())
