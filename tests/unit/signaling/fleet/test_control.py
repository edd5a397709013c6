import json

import httpx
import pytest

from relayctl.wire.call_id import parse
from signaling.fleet.control import Control, Readiness, Unreachable
from signaling.refusal import Refused
from tests.unit.signaling.fake_transceiver import (
    ANSWER,
    CONTROL_TOKEN,
    ENDPOINT,
    OFFER,
    SECRET,
    FakeTransceiver,
    Through,
    error,
    fleet,
)

pytestmark = pytest.mark.anyio
VIPS = (("203.0.113.10", 3478),)
ID = parse(f"rtc_{'a' * 24}_{SECRET}")


def answering(status: int, content: bytes, headers: dict[str, str] | None = None) -> Control:
    def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, content=content, headers=headers)

    return Control(Through(httpx.AsyncClient(transport=httpx.MockTransport(handle))))


async def test_create_sends_what_the_control_api_wants() -> None:
    fake = FakeTransceiver()
    created = await Control(fleet(fake), CONTROL_TOKEN).create(ENDPOINT, OFFER, VIPS, "plain")
    assert created.answer == ANSWER
    assert created.call_id.render() in fake.ids
    body = {"offer": OFFER, "vips": ["203.0.113.10:3478"], "dialect": "plain"}
    assert fake.seen == [("create", "/v1/calls", body)]
    assert fake.headers == [f"Bearer {CONTROL_TOKEN}"]


async def test_without_a_token_no_header_is_sent() -> None:
    fake = FakeTransceiver()
    await Control(fleet(fake)).create(ENDPOINT, OFFER, VIPS, "plain")
    assert fake.headers == [None]


async def test_a_refusal_keeps_the_words_of_the_transceiver() -> None:
    fake = FakeTransceiver(refusals={"create": error(406, "no_audio", "offers no audio")})
    with pytest.raises(Refused, match="offers no audio") as caught:
        await Control(fleet(fake)).create(ENDPOINT, OFFER, VIPS, "plain")
    assert (caught.value.status, caught.value.code) == (406, "no_audio")
    assert caught.value.param == "sdp"  # what the client calls it


@pytest.mark.parametrize(("header", "seconds"), [("7", 7), ("999999", 60), ("soon", 5), ("", 5)])
async def test_retry_after_is_kept_within_reason(header: str, seconds: int) -> None:
    control = answering(503, b"{}", {"Retry-After": header})
    with pytest.raises(Refused) as caught:
        await control.create(ENDPOINT, OFFER, VIPS, "plain")
    assert caught.value.retry_after_s == seconds


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (500, b"Internal Server Error"),
        (401, b'{"error": null}'),
        (400, b'{"error": {"code": "bad_vips", "message": "m", "param": "vips"}}'),
        (201, b"no json"),
        (201, b"[]"),
        (201, b'{"answer": "v=0"}'),
        (201, b'{"id": "rtc_x", "answer": "v=0"}'),
        (201, json.dumps({"id": ID.render(), "answer": 1}).encode()),
        (201, b"\xff"),
        *((status, b"[" * 100_000) for status in (201, 400)),
    ],
)
async def test_nonsense_is_a_transceiver_error(status: int, content: bytes) -> None:
    with pytest.raises(Refused) as caught:
        await answering(status, content).create(ENDPOINT, OFFER, VIPS, "plain")
    assert (caught.value.status, caught.value.code) == (502, "transceiver_error")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(("status", "code"), [(404, "call_not_found"), (410, "call_ended")])
async def test_calls_that_are_not_there(status: int, code: str) -> None:
    control = answering(status, b'{"error": {"code": "their_word", "message": "m"}}')
    for attempt in (
        control.restart(ENDPOINT, ID, OFFER),
        control.end(ENDPOINT, ID),
        control.describe(ENDPOINT, ID),
    ):
        with pytest.raises(Refused) as caught:
            await attempt
        assert (caught.value.status, caught.value.code) == (status, code)


async def test_unreachable_shows_the_endpoint_and_no_secret() -> None:
    with pytest.raises(Unreachable) as caught:
        await Control(fleet()).restart(ENDPOINT, ID, OFFER)
    assert "10.2.0.2:5000" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"ready": false, "reason": "draining"}', "draining"),
        (b'{"reason": "a\\nline of its own"}', "status 503"),
        (b'{"reason": 7}', "status 503"),
        (b"[]", "status 503"),
        (b"[" * 100_000, "status 503"),
    ],
)
async def test_why_it_is_not_ready(body: bytes, reason: str) -> None:
    assert (await answering(503, body).readiness(ENDPOINT)).reason == reason


async def test_too_many_half_open_calls_are_told_as_they_are() -> None:
    body = b'{"error": {"code": "too_many_half_open", "message": "20 calls wait"}}'
    with pytest.raises(Refused, match="20 calls wait") as caught:
        await answering(429, body, {"Retry-After": "1"}).create(ENDPOINT, OFFER, VIPS, "plain")
    refused = caught.value
    assert (refused.status, refused.code, refused.retry_after_s) == (429, "too_many_half_open", 1)


async def test_readiness() -> None:
    fake = FakeTransceiver(calls=4)
    control = Control(fleet(fake))
    assert await control.readiness(ENDPOINT) == Readiness(True, 0.4)
    fake.ready = False
    assert await control.readiness(ENDPOINT) == Readiness(False, 0.4, "status 503")
    silent = await control.readiness(("10.2.0.9", 5000))
    assert silent == Readiness(False, reason="unreachable")
    for body in (
        b"",
        b"[]",
        b"[" * 100_000,
        b'{"calls": "x", "capacity": 1}',
        b'{"calls": 1, "capacity": 0}',
    ):
        assert await answering(200, body).readiness(ENDPOINT) == Readiness(True)
