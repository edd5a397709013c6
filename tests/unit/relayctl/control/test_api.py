import asyncio
import json
from functools import partialmethod
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from relayctl.control.api import PIECE, create_app
from relayctl.flow import Flow, FlowKey
from relayctl.reason import Reason
from tests.unit.relayctl.control.test_relay import Fixture
from tests.unit.relayctl.packets import CLIENT

FLOW_PATH = "/v1/flows/198.51.100.7:40000"


class Client:
    """Asks an application without a server."""

    def __init__(self, app: Starlette) -> None:
        self._app = app

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://relay") as http:
                return await http.request(method, path, **options)

        return asyncio.run(ask())

    get = partialmethod(request, "GET")
    put = partialmethod(request, "PUT")
    delete = partialmethod(request, "DELETE")


@pytest.fixture
def fixture() -> Fixture:
    return Fixture()


@pytest.fixture
def admin(fixture: Fixture) -> Client:
    return Client(create_app(fixture.relay, writable=False))


@pytest.fixture
def control(fixture: Fixture) -> Client:
    return Client(create_app(fixture.relay, writable=True))


def error_of(answer: httpx.Response) -> tuple[int, str | None, str | None]:
    error = answer.json()["error"]
    assert set(error) == {"type", "code", "message", "param"}
    return answer.status_code, error["code"], error["param"]


def test_health_and_readiness(fixture: Fixture, admin: Client) -> None:
    assert admin.get("/healthz").text == "ok\n"
    assert (admin.get("/readyz").status_code, admin.get("/readyz").text) == (200, "ready\n")
    fixture.packet.silence_s = 60
    answer = admin.get("/readyz")
    assert (answer.status_code, answer.text) == (503, "the packet process is silent\n")
    assert admin.get("/healthz").status_code == 200


def test_metrics(admin: Client) -> None:
    answer = admin.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "ferryline_relay_ready 1.0" in answer.text


def test_status(admin: Client) -> None:
    assert admin.get("/v1/status").json()["instance"] == "relay-t"


@pytest.mark.parametrize("count", [0, 1, PIECE, PIECE + 1])
def test_flows_of_a_table_of_any_size(fixture: Fixture, admin: Client, count: int) -> None:
    for number in range(count):
        key = FlowKey(("198.51.100.7", 10000 + number), 1)
        fixture.datapath.flows.install(key, Flow(("10.2.0.2", 5000), 7, 5107))
    flows = json.loads(admin.get("/v1/flows").text)["flows"]
    assert len({flow["client"] for flow in flows}) == len(flows) == count


def test_one_flow(fixture: Fixture, admin: Client) -> None:
    assert error_of(admin.get(FLOW_PATH)) == (404, "no_flow", "client")
    fixture.install()
    assert admin.get(FLOW_PATH).json()["endpoint"] == "10.2.0.2:5000"
    assert admin.get(FLOW_PATH, params={"vip": "203.0.113.1:3478"}).json()["vip_id"] == 1
    assert error_of(admin.get(FLOW_PATH, params={"vip": "2"})) == (404, "no_flow", "client")
    assert error_of(admin.get("/v1/flows/nobody")) == (400, "bad_address", "client")


def test_reasons_and_nexthops(fixture: Fixture, admin: Client) -> None:
    fixture.datapath.write_slow_reasons({Reason.FORWARD: 3})
    reasons = admin.get("/v1/reasons").json()["reasons"]
    assert {"reason": "forward", "counted_by": "program", "count": 3} in reasons
    [nexthop] = admin.get("/v1/nexthops").json()["nexthops"]
    assert nexthop["gateway"] == "10.2.0.2"


def test_the_admin_address_only_reads(fixture: Fixture, admin: Client) -> None:
    fixture.install()
    assert admin.delete(FLOW_PATH).status_code == 405
    assert admin.put("/v1/drain").status_code == 404
    assert fixture.datapath.flows.get(FlowKey(CLIENT, 1))


def test_delete(fixture: Fixture, control: Client) -> None:
    fixture.install()
    assert control.delete(FLOW_PATH).status_code == 204
    assert error_of(control.delete(FLOW_PATH)) == (404, "no_flow", "client")
    fixture.install()
    fixture.packet.takes_messages = False
    assert error_of(control.delete(FLOW_PATH)) == (503, "busy", None)


def test_drain_fails_readiness_and_nothing_else(control: Client) -> None:
    assert control.put("/v1/drain").status_code == 204
    assert control.get("/readyz").text == "draining\n"
    assert control.get("/v1/flows").status_code == 200
    assert control.delete("/v1/drain").status_code == 204
    assert control.get("/readyz").status_code == 200


def test_unknown_paths_answer_in_the_same_form(admin: Client) -> None:
    assert error_of(admin.get("/v2")) == (404, None, None)
