from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse

from relayctl.wire.call_id import parse
from tests.unit.signaling.fake_transceiver import (
    ANSWER,
    CONFIG,
    OFFER,
    SECRET,
    VIP,
    FakeTransceiver,
    error,
    signaling,
)

pytestmark = pytest.mark.anyio
CALLS = "/v1/realtime/calls"
SDP = {"Content-Type": "application/sdp"}


async def begun(fake: FakeTransceiver, **more: Any) -> tuple[httpx.AsyncClient, str]:
    """A client and the Location of a call."""
    _, client = await signaling(fake, **more)
    reply = await client.post(CALLS, content=OFFER, headers=SDP)
    return client, reply.headers["location"]


async def test_create_answers_as_small_clients_need_it() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    reply = await client.post(CALLS, content=OFFER, headers=SDP)
    assert reply.status_code == 201
    assert reply.text == ANSWER
    assert reply.headers["content-type"] == "application/sdp"
    assert int(reply.headers["content-length"]) == len(ANSWER)
    assert "transfer-encoding" not in reply.headers
    path, _, text = reply.headers["location"].rpartition("/")
    assert path == CALLS
    assert parse(text).secret == SECRET
    _, _, body = fake.seen[0]
    assert body == {"offer": OFFER, "vips": [VIP], "dialect": "realtime"}


@pytest.mark.parametrize(
    ("session", "query", "expected"),
    [
        ('{"model": "m", "voice": "ash"}', "", {"model": "m", "voice": "ash"}),
        ('{"voice": "ash"}', "?model=q", {"model": "q", "voice": "ash"}),
        (None, "?model=q", {"model": "q"}),
        (None, "", None),
    ],
)
async def test_a_form_brings_a_session(
    session: str | None, query: str, expected: dict[str, str] | None
) -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    parts = {"sdp": (None, OFFER)} | ({} if session is None else {"session": (None, session)})
    reply = await client.post(CALLS + query, files=parts)
    assert (reply.status_code, reply.text) == (201, ANSWER)
    body = fake.seen[0][2]
    assert (body["offer"], body.get("session")) == (OFFER, expected)


async def test_an_offer_alone_may_name_its_model() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    await client.post(f"{CALLS}?model=q", content=OFFER, headers=SDP)
    assert fake.seen[0][2]["session"] == {"model": "q"}


@pytest.mark.parametrize(
    ("parts", "code", "param"),
    [
        ({"sdp": OFFER, "session": "{"}, "bad_session", "session"),
        ({"sdp": OFFER, "session": "[]"}, "bad_session", "session"),
        ({"session": "{}"}, "bad_sdp", "sdp"),
        ({"sdp": "v=1"}, "bad_sdp", "sdp"),
    ],
)
async def test_a_bad_part_is_named_and_reaches_no_transceiver(
    parts: dict[str, str], code: str, param: str
) -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    files = {name: (None, text) for name, text in parts.items()}
    reply = await client.post(CALLS, files=files)
    assert reply.status_code == 400
    assert (reply.json()["error"]["code"], reply.json()["error"]["param"]) == (code, param)
    assert not fake.seen


@pytest.mark.parametrize("parts", [{"session": "{}"}, {"sdp": "", "session": "{}"}])
async def test_a_form_without_an_offer_hears_of_the_part(parts: dict[str, str]) -> None:
    _, client = await signaling(FakeTransceiver())
    reply = await client.post(CALLS, files={name: (None, text) for name, text in parts.items()})
    assert "no part sdp" in reply.json()["error"]["message"]


async def test_a_session_that_the_transceiver_minds_is_the_clients_fault() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    fake.refusals["create"] = JSONResponse(
        {"error": {"code": "session_too_large", "message": "too much", "param": "session"}}, 400
    )
    reply = await client.post(CALLS, files={"sdp": (None, OFFER), "session": (None, "{}")})
    error = reply.json()["error"]
    assert reply.status_code == 400
    assert (error["code"], error["param"]) == ("session_too_large", "session")


@pytest.mark.parametrize(
    ("header", "dialect"),
    [("realtime=v1", "realtime-beta"), ("assistants=v2", "realtime"), ("", "realtime")],
)
async def test_clients_of_the_beta_api_say_so(header: str, dialect: str) -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    await client.post(CALLS, content=OFFER, headers={**SDP, "OpenAI-Beta": header})
    assert fake.seen[0][2]["dialect"] == dialect


async def test_restart() -> None:
    client, location = await begun(FakeTransceiver())
    reply = await client.post(location, content=OFFER, headers=SDP)
    assert (reply.status_code, reply.text) == (200, ANSWER)
    assert reply.headers["content-type"] == "application/sdp"
    assert int(reply.headers["content-length"]) == len(ANSWER)


async def test_hang_up_and_delete() -> None:
    client, location = await begun(FakeTransceiver())
    hangup = await client.post(f"{location}/hangup")
    assert (hangup.status_code, hangup.content) == (200, b"")
    delete = await client.delete(location)
    assert (delete.status_code, delete.content) == (204, b"")


@pytest.mark.parametrize(
    ("method", "suffix", "fails"),
    [
        ("POST", "", "restart"),
        ("POST", "/hangup", "end"),
        ("DELETE", "", "end"),
        ("GET", "", "describe"),
        ("GET", "/path", "describe"),
    ],
)
@pytest.mark.parametrize(
    ("status", "code"), [(404, "call_not_found"), (410, "call_ended"), (500, "transceiver_error")]
)
async def test_what_the_owner_refuses(
    method: str, suffix: str, fails: str, status: int, code: str
) -> None:
    fake = FakeTransceiver()
    client, location = await begun(fake)
    fake.refusals[fails] = error(status, "theirs", "their words")
    reply = await client.request(method, location + suffix, content=OFFER, headers=SDP)
    assert reply.status_code == (502 if status == 500 else status)
    assert reply.json()["error"]["code"] == code


async def test_a_changed_bundle_is_a_conflict() -> None:
    fake = FakeTransceiver()
    client, location = await begun(fake)
    fake.refusals["restart"] = error(409, "bundle_changed", "other sections than before")
    reply = await client.post(location, content=OFFER, headers=SDP)
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "bundle_changed")


@pytest.mark.parametrize(("method", "suffix"), [("POST", ""), ("DELETE", ""), ("GET", "/path")])
async def test_the_owner_is_gone(method: str, suffix: str) -> None:
    _, location = await begun(FakeTransceiver())
    _, alone = await signaling()
    reply = await alone.request(method, location + suffix, content=OFFER, headers=SDP)
    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "owner_gone")


@pytest.mark.parametrize(
    ("config", "full", "code"),
    [
        (CONFIG, True, "all_full"),
        (
            CONFIG.replace('[[transceiver]]\nendpoint = "10.2.0.2:5000"', ""),
            False,
            "no_transceiver",
        ),
    ],
)
async def test_503_says_why_and_when_to_come_again(config: str, full: bool, code: str) -> None:
    fake = FakeTransceiver()
    if full:
        fake.refusals["create"] = error(503, "full", "no slot", **{"Retry-After": "11"})
    _, client = await signaling(fake, config=config)
    reply = await client.post(CALLS, content=OFFER, headers=SDP)
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, code)
    assert reply.headers["retry-after"] == ("11" if full else "1")


async def test_describe_is_what_the_owner_says() -> None:
    client, location = await begun(FakeTransceiver())
    reply = await client.get(location)
    assert reply.json()["state"] == "connected"
    assert reply.headers["cache-control"] == "no-store"


async def test_path_comes_from_the_relay() -> None:
    flow = {"path": "kernel", "packets": {"up": 120, "down": 118}}
    relay = httpx.MockTransport(lambda request: httpx.Response(200, json=flow))
    client, location = await begun(FakeTransceiver(), admins={"http://10.2.0.1:9100": relay})
    assert (await client.get(f"{location}/path")).json() == {
        "path": "kernel",
        "reason": None,
        "client": "198.51.100.4:6000",
        "vip": VIP,
        "endpoint": "10.2.0.2:5000",
        "packets": {"up": 120, "down": 118},
        "ingress": "relay-a",
    }


async def test_path_without_a_relay_to_ask_is_unknown() -> None:
    client, location = await begun(FakeTransceiver())
    path = (await client.get(f"{location}/path")).json()
    assert (path["path"], path["ingress"]) == ("unknown", None)
    assert path["packets"] == {"up": 5, "down": 4}  # the transceiver's own count


async def test_path_before_the_client_is_known() -> None:
    client, location = await begun(FakeTransceiver(client=None))
    path = (await client.get(f"{location}/path")).json()
    assert (path["path"], path["client"]) == ("unknown", None)
