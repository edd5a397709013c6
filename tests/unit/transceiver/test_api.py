import asyncio
import json
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from tests.unit.transceiver.harness import Client, World
from transceiver import admission
from transceiver.api import MAX_BODY, create_app
from transceiver.resume.resumption import Resumption

TOKEN = "correct horse battery"
AUTH = {"Authorization": f"Bearer {TOKEN}"}
VIPS = ["203.0.113.10:3478"]
LARGE = {"instructions": "ü" * 32_800}
DEEP = json.loads('{"x":' * 33 + "1" + "}" * 33)


class Api:
    def __init__(self, *, token: str = TOKEN) -> None:
        self.world = World(capacity=2)
        self.app = create_app(
            self.world.calls,
            CollectorRegistry(),
            token=token,
            drain=self.world.calls.admission.close,
            status=lambda: {"calls": len(self.world.calls)},
            resumption=Resumption(None, None, self.world.counts.resumes),
        )

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def run() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://t") as client:
                return await client.request(method, path, **{"headers": AUTH, **more})

        return asyncio.run(run())

    def create(self, **changes: Any) -> httpx.Response:
        body = {"offer": Client(("192.0.2.1", 9)).offer(), "vips": VIPS, "dialect": "realtime"}
        return self.request("POST", "/v1/calls", json=body | changes)


@pytest.fixture
def api() -> Api:
    return Api()


def code(response: httpx.Response) -> tuple[int, str]:
    error = response.json()["error"]
    assert set(error) == {"type", "code", "message", "param"}
    return response.status_code, error["code"]


def test_the_life_of_a_call(api: Api) -> None:
    created = api.create()
    assert created.status_code == 201
    path = f"/v1/calls/{created.json()['id']}"
    assert "m=audio 3478" in created.json()["answer"]
    assert api.request("GET", path).json()["state"] == "new"
    offer = Client(("192.0.2.1", 9), ufrag="efgh").offer()
    restarted = api.request("POST", f"{path}/restart", json={"offer": offer})
    assert restarted.status_code == 200
    assert restarted.json()["answer"] != created.json()["answer"]
    assert api.request("DELETE", path).status_code == 204
    assert code(api.request("DELETE", path)) == (410, "call_ended")
    assert code(api.request("POST", f"{path}/restart", json={"offer": offer}))[0] == 410
    assert api.request("GET", path).json()["state"] == "ended"


def test_nothing_is_resumed_where_nothing_is_kept(api: Api) -> None:
    created = api.create()
    path = f"/v1/calls/{created.json()['id']}"
    assert code(api.create(resume=created.json()["id"])) == (502, "resume_unavailable")
    handed_over = api.request("DELETE", f"{path}?reason=resumed&subject=")
    assert code(handed_over) == (502, "resume_unavailable")
    assert api.request("GET", path).json()["state"] == "new"


def test_a_restart_with_credentials_alone(api: Api) -> None:
    created = api.create()
    path = f"/v1/calls/{created.json()['id']}"
    ice = {"ufrag": "efgh", "pwd": "anotherpasswordanother"}
    restarted = api.request("POST", f"{path}/restart", json={"ice": ice})
    assert restarted.status_code == 200
    call = api.request("GET", path).json()
    assert (call["version"], call["client_ufrag"]) == (2, "efgh")

    def credentials(answer: httpx.Response) -> list[str]:
        return [line for line in answer.json()["answer"].split("\r\n") if "a=ice-" in line]

    assert credentials(restarted) != credentials(created)
    again = api.request("POST", f"{path}/restart", json={"ice": ice})
    assert credentials(again) == credentials(restarted)  # its answer was lost


@pytest.mark.parametrize(
    ("ice", "expected"),
    [
        pytest.param([], "invalid_parameter", id="list"),
        pytest.param({"ufrag": "efgh"}, "invalid_parameter", id="no_pwd"),
        pytest.param({"ufrag": "efgh", "pwd": "x"}, "no_ice", id="short_pwd"),
        pytest.param({"ufrag": "e-g", "pwd": "x" * 22}, "no_ice", id="foreign_letter"),
    ],
)
def test_credentials_that_nobody_could_have(api: Api, ice: Any, expected: str) -> None:
    path = f"/v1/calls/{api.create().json()['id']}"
    assert code(api.request("POST", f"{path}/restart", json={"ice": ice})) == (400, expected)
    assert api.request("GET", path).json()["version"] == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"offer": "nonsense"}, (400, "bad_sdp"), id="no_sdp"),
        pytest.param({"offer": None}, (400, "invalid_parameter"), id="no_offer"),
        pytest.param({"vips": []}, (400, "bad_vips"), id="no_vips"),
        pytest.param({"vips": "x"}, (400, "bad_vips"), id="vips_text"),
        pytest.param({"vips": ["host:1"]}, (400, "bad_vips"), id="vip_name"),
        pytest.param({"vips": VIPS * 2}, (400, "bad_vips"), id="two_of_a_family"),
        pytest.param({"dialect": "klingon"}, (400, "unknown_dialect"), id="dialect"),
        pytest.param({"dialect": []}, (400, "unknown_dialect"), id="dialect_list"),
        pytest.param({"session": []}, (400, "invalid_session"), id="session_list"),
        pytest.param({"session": None}, (400, "invalid_session"), id="session_null"),
        pytest.param({"session": DEEP}, (400, "invalid_session"), id="session_deep"),
        pytest.param({"session": LARGE}, (400, "session_too_large"), id="session_large"),
        pytest.param({"subject": 1}, (400, "invalid_parameter"), id="subject_number"),
        pytest.param({"subject": "x" * 129}, (400, "invalid_parameter"), id="subject_long"),
    ],
)
def test_bad_requests(api: Api, changes: dict[str, Any], expected: tuple[int, str]) -> None:
    assert code(api.create(**changes)) == expected
    assert len(api.world.calls) == 0


@pytest.mark.parametrize("dialect", ["realtime", "realtime-beta", "rtvi", "plain"])
def test_the_session_and_the_dialect_go_to_the_call(api: Api, dialect: str) -> None:
    session = {"instructions": "be brief", "x": {"unknown": [1, None]}}
    created = api.create(session=session, dialect=dialect)
    assert created.status_code == 201
    assert api.world.calls.find(created.json()["id"])._session.items() >= session.items()


def test_a_call_is_ended_with_its_last_words(api: Api) -> None:
    path = f"/v1/calls/{api.create().json()['id']}"
    assert api.request("POST", f"{path}/finish").status_code == 202
    assert api.request("GET", path).json()["reason"] == "hangup"  # nobody was there to hear any
    assert code(api.request("POST", f"{path}/finish")) == (410, "call_ended")
    assert code(api.request("POST", "/v1/calls/x/finish")) == (404, "call_not_found")


def test_offers_without_audio_and_of_lite_agents_are_not_acceptable(api: Api) -> None:
    offer = Client(("192.0.2.1", 9)).offer()
    lite = offer.replace("t=0 0", "t=0 0\r\na=ice-lite")
    assert code(api.create(offer=lite)) == (406, "ice_lite_peer")
    video = offer.replace("m=audio", "m=video").replace("opus/48000/2", "VP8/90000")
    assert code(api.create(offer=video)) == (406, "no_audio")


def test_another_bundle_is_a_conflict(api: Api) -> None:
    path = f"/v1/calls/{api.create().json()['id']}"
    offer = (
        Client(("192.0.2.1", 9)).offer().replace("mid:0", "mid:9").replace("BUNDLE 0", "BUNDLE 9")
    )
    assert code(api.request("POST", f"{path}/restart", json={"offer": offer})) == (
        409,
        "bundle_changed",
    )


def test_full(api: Api) -> None:
    api.create()
    api.create()
    full = api.create()
    assert code(full) == (503, "overloaded")
    assert full.headers["Retry-After"] == "1"
    ready = api.request("GET", "/readyz")
    assert ready.status_code == 503
    assert ready.json() == {"ready": False, "calls": 2, "capacity": 2, "reason": "overloaded"}


def test_draining(api: Api) -> None:
    path = f"/v1/calls/{api.create().json()['id']}"
    begun = api.request("POST", "/v1/drain")
    assert (begun.status_code, begun.json()) == (202, {"calls": 1})
    refused = api.create()
    assert code(refused) == (503, "draining")
    assert refused.headers["Retry-After"] == "1"
    assert api.request("GET", "/readyz").json()["reason"] == "draining"
    assert api.request("GET", path).json()["state"] == "new"  # what is there goes on
    assert api.request("DELETE", path).status_code == 204


def test_too_many_half_open_calls_of_a_subject(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MAX_HALF_OPEN_OF_SUBJECT", 1)
    assert api.create(subject="key_7").status_code == 201
    refused = api.create(subject="key_7")
    assert code(refused) == (429, "too_many_half_open")
    assert refused.headers["Retry-After"] == "1"
    assert api.create(subject="key_8").status_code == 201


def test_status(api: Api) -> None:
    assert api.request("GET", "/v1/status").json() == {"calls": 0}


@pytest.mark.parametrize("body", [b"{", b"[]", b"", b"\xff", b"[" * 100_000, b'{"x": NaN}'])
def test_no_json(api: Api, body: bytes) -> None:
    assert code(api.request("POST", "/v1/calls", content=body)) == (400, "invalid_json")


def test_text_that_utf_8_cannot_carry(api: Api) -> None:
    offer = Client(("192.0.2.1", 9)).offer().replace("a=mid:0", "a=mid:\ud800")
    body = json.dumps({"offer": offer, "vips": VIPS})
    refused = api.request("POST", "/v1/calls", content=body.encode())
    assert code(refused) == (400, "invalid_parameter")
    body = json.dumps({"offer": "v=0", "vips": VIPS, "session": {"x": "\udfff"}})
    refused = api.request("POST", "/v1/calls", content=body.encode())
    assert code(refused) == (400, "invalid_session")


def test_a_body_has_its_limit(api: Api) -> None:
    body = b" " * (MAX_BODY + 1)
    assert code(api.request("POST", "/v1/calls", content=body)) == (413, "body_too_large")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
    ],
)
def test_every_v1_route_wants_the_token(api: Api, headers: dict[str, str]) -> None:
    for method, path in (
        ("POST", "/v1/calls"),
        ("GET", "/v1/calls/x"),
        ("DELETE", "/v1/calls/x"),
        ("POST", "/v1/calls/x/restart"),
        ("POST", "/v1/calls/x/finish"),
        ("POST", "/v1/drain"),
        ("GET", "/v1/status"),
    ):
        assert code(api.request(method, path, headers=headers)) == (401, "unauthorized")


def test_no_token_wanted_where_none_is_set() -> None:
    assert code(Api(token="").request("GET", "/v1/calls/x", headers={})) == (404, "call_not_found")


def test_health_readiness_and_metrics_are_open(api: Api) -> None:
    assert api.request("GET", "/healthz", headers={}).text == "ok\n"
    assert api.request("GET", "/readyz", headers={}).json() == {
        "ready": True,
        "calls": 0,
        "capacity": 2,
    }
    assert api.request("GET", "/metrics", headers={}).status_code == 200


def test_unknown_routes_and_methods_have_the_same_shape(api: Api) -> None:
    assert code(api.request("GET", "/v2")) == (404, "not_found")
    assert code(api.request("PUT", "/v1/calls")) == (405, "method_not_allowed")


def test_a_fault_of_ours_is_told_without_its_text(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.world.calls, "describe", lambda call_id: 1 / 0)
    response = api.request("GET", "/v1/calls/x")
    assert code(response) == (500, "internal_error")
    assert "zero" not in response.text


def test_a_call_of_another_subject_cannot_be_ended(api: Api) -> None:
    path = f"/v1/calls/{api.create(subject='me & you').json()['id']}"
    assert code(api.request("DELETE", f"{path}?subject=me")) == (404, "call_not_found")
    assert api.request("DELETE", f"{path}?subject=me%20%26%20you").status_code == 204
