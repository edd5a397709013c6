from typing import Any, cast

import httpx
import pytest
from openai import AsyncOpenAI, BadRequestError
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
from tests.unit.signaling.live import API_KEY, OTHER_KEY, api_key

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
    assert (reply.status_code, reply.text) == (200, ANSWER.replace("o=- 1 1 ", "o=- 1 2 "))
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
        fake.refusals["create"] = error(503, "overloaded", "no slot", **{"Retry-After": "11"})
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


async def test_the_older_address_begins_calls_too() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    reply = await client.post("/v1/realtime?model=q", content=OFFER, headers=SDP)
    assert (reply.status_code, reply.text) == (201, ANSWER)
    assert int(reply.headers["content-length"]) == len(ANSWER)
    assert reply.headers["location"].startswith(f"{CALLS}/rtc_")
    assert fake.seen[0][2]["session"] == {"model": "q"}


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(
            {"sdp": (None, OFFER), "session": (None, '{"voice": "ash"}')}, id="browsers_form_data"
        ),
        pytest.param(
            {
                "sdp": (None, OFFER, "application/sdp"),
                "session": (None, '{"voice": "ash"}', "application/json"),
            },
            id="content_types",
        ),
        pytest.param(
            {
                "sdp": ("offer.sdp", OFFER, "application/sdp"),
                "session": ("session.json", '{"voice": "ash"}', "application/octet-stream"),
            },
            id="files",
        ),
        pytest.param(
            {"model": (None, "x"), "session": (None, '{"voice": "ash"}'), "sdp": (None, OFFER)},
            id="another_order_and_a_part_that_nobody_knows",
        ),
    ],
)
@pytest.mark.parametrize("path", [CALLS, "/v1/realtime"])
async def test_forms_of_all_makes_are_read(path: str, parts: dict[str, Any]) -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    reply = await client.post(path, files=parts)
    assert reply.status_code == 201
    body = fake.seen[0][2]
    assert (body["offer"], body["session"]) == (OFFER, {"voice": "ash"})


async def test_openais_own_package_begins_and_ends_a_call() -> None:
    fake = FakeTransceiver()
    _, http = await signaling(fake)
    client = AsyncOpenAI(api_key="any", base_url="http://signaling/v1", http_client=cast(Any, http))
    begun = await client.realtime.calls.create(
        sdp=OFFER, session={"type": "realtime", "instructions": "be brief"}
    )
    assert begun.text == ANSWER
    call_id = begun.response.headers["location"].split("/").pop()
    asked = fake.seen[0][2]
    assert asked["session"] == {"type": "realtime", "instructions": "be brief"}
    await client.realtime.calls.hangup(call_id)
    assert fake.seen[-1][:2] == ("end", f"/v1/calls/{call_id}")
    with pytest.raises(BadRequestError, match="is for telephone calls"):
        await client.realtime.calls.accept(call_id, type="realtime")
    with pytest.raises(BadRequestError) as caught:
        await client.realtime.calls.reject(call_id)
    assert caught.value.code == "sip_only"
    with pytest.raises(BadRequestError):
        await client.realtime.calls.refer(call_id, target_uri="tel:+41")


KEYS = "".join(api_key(subject, key) for subject, key in (("me", API_KEY), ("you", OTHER_KEY)))


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def test_calls_are_managed_with_a_key_on_behalf_of_its_subject() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake, config=f"{CONFIG}{KEYS}")
    reply = await client.post(CALLS, content=OFFER, headers={**SDP, **bearer(API_KEY)})
    assert fake.seen[0][2]["subject"] == "me"
    location = reply.headers["location"]
    for method, path in (
        ("POST", f"{location}/hangup"),
        ("DELETE", location),
        ("POST", f"{location}/accept"),
        ("POST", CALLS),
        ("POST", "/v1/realtime"),
    ):
        refused = await client.request(method, path)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "missing_api_key")
    assert len(fake.seen) == 1
    for method, path in (("POST", f"{location}/hangup"), ("DELETE", location)):
        await client.request(method, path, headers=bearer(OTHER_KEY))
        assert fake.queries[-1] == {"subject": "you"}
    assert (await client.get(location)).status_code == 200  # its id is enough


async def test_what_is_read_by_scripts_of_other_origins() -> None:
    _, client = await signaling(FakeTransceiver())
    headers = (
        "authorization, content-type, if-match, etag, openai-beta, x-openai-agents-sdk, "
        "x-request-id"
    )
    for path in (CALLS, "/v1/realtime", f"{CALLS}/rtc_x", f"{CALLS}/rtc_x/hangup"):
        for method in ("POST", "PATCH", "DELETE", "GET"):
            asked = {
                "Origin": "https://app.example",
                "Access-Control-Request-Method": method,
                "Access-Control-Request-Headers": headers,
            }
            reply = await client.options(path, headers=asked)
            assert reply.status_code == 200
            assert reply.headers["access-control-allow-origin"] == "*"
            assert method in reply.headers["access-control-allow-methods"]
            assert int(reply.headers["access-control-max-age"]) >= 600
            allowed = reply.headers["access-control-allow-headers"].lower()
            assert set(headers.split(", ")) <= set(allowed.split(", "))
    for status, sent in ((201, OFFER), (400, "v=1")):
        origin = {"Origin": "https://app.example"}
        reply = await client.post(CALLS, content=sent, headers={**SDP, **origin})
        assert reply.status_code == status
        assert reply.headers["access-control-allow-origin"] == "*"
        exposed = reply.headers["access-control-expose-headers"].lower().split(", ")
        assert {
            *("location", "etag", "link", "accept-patch", "accept-post", "retry-after"),
            *("x-request-id", "x-ferryline-ingress", "x-ferryline-steering"),
        } <= set(exposed)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", CALLS, {"POST"}),
        ("GET", "/v1/realtime", {"POST"}),
        ("PUT", f"{CALLS}/rtc_x", {"POST", "GET", "DELETE"}),
    ],
)
async def test_another_method_hears_of_those_there_are(
    method: str, path: str, allowed: set[str]
) -> None:
    _, client = await signaling(FakeTransceiver())
    reply = await client.request(method, path)
    assert (reply.status_code, reply.json()["error"]["code"]) == (405, "method_not_allowed")
    assert allowed <= set(reply.headers["allow"].split(", "))


@pytest.mark.parametrize("path", [CALLS, "/v1/realtime"])
async def test_a_call_can_carry_on_another(path: str) -> None:
    fake = FakeTransceiver()
    client, location = await begun(fake)
    old = location.rpartition("/")[2]
    reply = await client.post(f"{path}?resume={old}", content=OFFER, headers=SDP)
    assert reply.status_code == 201
    assert reply.headers["location"] != location
    assert fake.seen[-1][2]["resume"] == old
