import json
from typing import Any

import httpx
import pytest

from relayctl.wire.call_id import parse
from signaling.access import api_keys
from signaling.faces.pipecat import read_asked, read_candidates, read_start
from signaling.ice import MAX_CANDIDATES
from signaling.refusal import Refused
from tests.unit.signaling.fake_transceiver import (
    ANSWER,
    CONFIG,
    OFFER,
    SECRET,
    FakeTransceiver,
    error,
    signaling,
)

CANDIDATE = "candidate:1 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw"
SESSION = {"instructions": "be brief"}
GONE = f"rtc_{'x' * 24}_{SECRET}"
API_KEY = "sk-fl-of-the-tests"
KEYS = f"""
[[api_key]]
subject = "acme"
sha256 = "{api_keys.digest_of(API_KEY).hex()}"
"""
BEARER = {"Authorization": f"Bearer {API_KEY}"}


def asked(**changes: Any) -> dict[str, Any]:
    """An offer as small-webrtc-transport posts it."""
    return {"sdp": OFFER, "type": "offer", "pc_id": None, "restart_pc": False, **changes}


def methods(fake: FakeTransceiver) -> list[str]:
    return [method for method, _, _ in fake.seen]


async def begun(client: httpx.AsyncClient, **changes: Any) -> str:
    reply = await client.post("/api/offer", json=asked(**changes))
    assert reply.status_code == 200
    return str(reply.json()["pc_id"])


@pytest.mark.anyio
async def test_an_offer_and_its_answer() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    reply = await client.post("/api/offer", json=asked(requestData={"session": SESSION, "x": 1}))
    assert reply.status_code == 200
    call = reply.json()["pc_id"]
    assert reply.json() == {"sdp": ANSWER, "type": "answer", "pc_id": call}
    assert call in fake.ids
    assert (fake.seen[0][2]["dialect"], fake.seen[0][2]["session"]) == ("rtvi", SESSION)


@pytest.mark.anyio
async def test_another_offer_of_a_call_renegotiates_it() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    call = await begun(client)
    assert await begun(client, pc_id=call) == call
    assert methods(fake) == ["create", "restart"]
    assert len(fake.ids) == 1


@pytest.mark.anyio
async def test_restart_pc_replaces_the_call() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    old = await begun(client)
    new = await begun(client, pc_id=old, restart_pc=True, request_data={"session": SESSION})
    assert new != old
    assert methods(fake) == ["create", "end", "create"]
    assert fake.seen[2][2]["session"] == SESSION
    assert await begun(client, pc_id=GONE, restart_pc=True) not in (old, new)


@pytest.mark.anyio
@pytest.mark.parametrize("status", [404, 410])
async def test_an_offer_for_a_call_that_is_over_begins_a_new_one(status: int) -> None:
    """A 4xx would be the end of the client, for good."""
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    old = await begun(client)
    fake.refusals["restart"] = error(status, "over", "there is none")
    assert await begun(client, pc_id=old) != old
    assert await begun(client, pc_id="8d0f7d2e-not-one-of-ours") != old


@pytest.mark.anyio
async def test_an_offer_that_cannot_be_one_of_the_call_is_refused() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    call = await begun(client)
    fake.refusals["restart"] = error(409, "bundle_changed", "another DTLS fingerprint")
    reply = await client.post("/api/offer", json=asked(pc_id=call))
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "bundle_changed")
    assert methods(fake) == ["create", "restart"]


@pytest.mark.anyio
async def test_candidates() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    call = await begun(client)
    candidates = [
        {"candidate": CANDIDATE, "sdp_mid": "0", "sdp_mline_index": 0},
        {"candidate": "", "sdp_mid": "0", "sdp_mline_index": 0},
        {"candidate": None, "sdp_mid": None, "sdp_mline_index": None},
    ]
    reply = await client.patch("/api/offer", json={"pc_id": call, "candidates": candidates})
    assert (reply.status_code, reply.json()) == (200, {"status": "success"})
    other = await client.patch("/api/offer", json={"pc_id": GONE, "candidates": []})
    assert (other.status_code, other.json()["error"]["code"]) == (404, "call_not_found")
    fake.state = "ended"
    late = await client.patch("/api/offer", json={"pc_id": call, "candidates": []})
    assert late.status_code == 410


@pytest.mark.anyio
async def test_a_session_from_start_to_its_call() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake, config=CONFIG + '[[ice_server]]\nurls = "stun:s.example"\n')
    body = {"transport": "webrtc", "enableDefaultIceServers": True, "body": {"session": SESSION}}
    started = await client.post("/start", json=body)
    assert started.status_code == 200
    assert started.headers["cache-control"] == "no-store"
    assert started.json()["iceConfig"] == {"iceServers": [{"urls": ["stun:s.example"]}]}
    url = f"/sessions/{started.json()['sessionId']}/api/offer"
    call = (await client.post(url, json=asked())).json()["pc_id"]
    assert fake.seen[0][2]["session"] == SESSION
    reply = await client.patch(url, json={"pc_id": call, "candidates": []})
    assert reply.status_code == 200


@pytest.mark.anyio
async def test_start_takes_no_body_too() -> None:
    _, client = await signaling(FakeTransceiver())
    reply = await client.post("/start", headers={"Content-Type": "application/json"})
    assert (reply.status_code, reply.json()["iceConfig"]) == (200, {"iceServers": []})


@pytest.mark.anyio
async def test_keys() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake, config=CONFIG + KEYS)
    assert (await client.post("/api/offer", json=asked())).status_code == 401
    assert (await client.post("/start", content="nonsense")).status_code == 401
    for key in ("ek_nothing", API_KEY):  # an API key is not for paths
        assert (await client.post(f"/sessions/{key}/api/offer", json=asked())).status_code == 401
    assert methods(fake) == []
    started = await client.post("/start", json={"body": {"session": SESSION}}, headers=BEARER)
    url = f"/sessions/{started.json()['sessionId']}/api/offer"
    call = (await client.post(url, json=asked())).json()["pc_id"]
    assert (fake.seen[0][2]["subject"], fake.seen[0][2]["session"]) == ("acme", SESSION)
    # the id of a call is key enough for what is about that call alone
    assert await begun(client, pc_id=call) == call
    patched = await client.patch("/api/offer", json={"pc_id": call, "candidates": []})
    assert patched.status_code == 200
    again = await client.post("/api/offer", json=asked(pc_id=call, restart_pc=True))
    assert again.status_code == 401
    assert "end" not in methods(fake)


@pytest.mark.anyio
async def test_status() -> None:
    fake = FakeTransceiver()
    app, client = await signaling(fake)
    reply = await client.get("/status")
    assert reply.json() == {"status": "ready", "transports": ["webrtc"]}
    fake.ready = False
    await app.state.registry.refresh()
    assert (await client.get("/status")).status_code == 503


def test_both_spellings_of_what_an_application_sends() -> None:
    for name in ("request_data", "requestData"):
        assert read_asked(json.dumps(asked(**{name: {"session": SESSION}})).encode()).session
    for other in (None, "text", ["session"], {}, {"session": None}):
        assert read_asked(json.dumps(asked(requestData=other)).encode()).session == {}


def test_nothing_of_an_offer_is_shown() -> None:
    shown = repr(read_asked(json.dumps(asked(pc_id=GONE)).encode()))
    assert SECRET not in shown
    assert "clientPassword" not in shown


@pytest.mark.parametrize(
    ("changes", "param", "message"),
    [
        ({"type": "answer"}, "type", 'type has to be "offer"'),
        ({"sdp": None}, "sdp", "sdp has to be text"),
        ({"sdp": "v=0\r\n"}, "sdp", "no m= line"),
        ({"pc_id": 7}, "pc_id", "pc_id has to be text or null"),
        ({"requestData": {"session": []}}, "session", "session has to be an object"),
        ({"requestData": {"session": {"a": "\ud800"}}}, "session", "UTF-8"),
    ],
)
def test_offers_that_are_refused(changes: dict[str, Any], param: str, message: str) -> None:
    with pytest.raises(Refused, match=message) as caught:
        read_asked(json.dumps(asked(**changes)).encode())
    assert (caught.value.status, caught.value.param) == (400, param)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"candidates": []}, "pc_id has to be text"),
        ({"pc_id": None}, "pc_id has to be text"),
        ({"pc_id": "x", "candidates": {}}, "has to be a list"),
        ({"pc_id": "x", "candidates": ["x"]}, "has to be an object"),
        ({"pc_id": "x", "candidates": [{}]}, "has to be an object"),
        ({"pc_id": "x", "candidates": [{"candidate": 1}]}, "has to be an object"),
        ({"pc_id": "x", "candidates": [{"candidate": "x"}]}, "a candidate is none"),
        ({"pc_id": "x", "candidates": [{"candidate": ""}] * (MAX_CANDIDATES + 1)}, "at most 64"),
        ([], "an object"),
    ],
)
def test_candidates_that_are_refused(body: Any, message: str) -> None:
    with pytest.raises(Refused, match=message) as caught:
        read_candidates(json.dumps(body).encode())
    assert caught.value.status == 400


def test_other_transports_are_not_here() -> None:
    with pytest.raises(Refused, match='transport has to be "webrtc"'):
        read_start(b'{"transport": "daily"}')


def test_the_id_of_a_call_is_the_id_of_the_peer_connection() -> None:
    assert parse(GONE).render() == GONE
