"""`/openapi.json` is complete, and the service is what it says."""

from typing import Any

import pytest

from signaling.refusal import Code
from tests.unit.signaling.conformance import codes, examine, service
from tests.unit.signaling.fake_transceiver import CONFIG

METHODS = {"get", "post", "patch", "delete"}


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_service_keeps_to_its_description() -> None:
    app = service()
    outcome = examine(8, app=app)
    assert outcome.server_errors == []
    assert outcome.violations == []
    assert outcome.operations == {name for name, _ in operations(app.openapi())}
    assert {200, 201, 204, 400, 401, 404, 405, 415} <= outcome.statuses.keys()
    assert outcome.requests > 500


def test_every_operation_is_described() -> None:
    document = service().openapi()
    assert document["info"]["description"]
    known = {f"`{code}`" for code in Code}
    for name, operation in operations(document):
        assert operation["summary"], name
        assert "422" not in operation["responses"], name
        for status, response in operation["responses"].items():
            assert response["description"], name
            if int(status) >= 400:
                (content,) = response["content"].values()
                assert content["schema"] == {"$ref": "#/components/schemas/Error"}
                assert set(response["description"].split(", ")) <= known
            if status in ("429", "503"):
                assert "Retry-After" in response["headers"]


@pytest.mark.parametrize(("keys", "optional"), [(True, False), (False, True)])
def test_a_key_is_wanted_where_the_service_asks_for_keys(keys: bool, optional: bool) -> None:
    document = (service() if keys else service(CONFIG)).openapi()
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    guarded = {
        name: operation["security"]
        for name, operation in operations(document)
        if "security" in operation
    }
    for name in (
        *("POST /v1/realtime/calls", "POST /v1/realtime", "POST /whip", "POST /offer"),
        *("DELETE /v1/realtime/calls/{call_id}", "POST /v1/realtime/client_secrets"),
    ):
        assert ({} in guarded[name]) is optional
        assert {"key": []} in guarded[name]
    assert "GET /v1/realtime/calls/{call_id}" not in guarded


def test_refusals_that_no_made_up_request_meets_are_told_too() -> None:
    told = codes(service().openapi())
    for name in ("POST /v1/realtime/calls", "POST /v1/realtime", "POST /whip", "POST /offer"):
        assert {"rate_limited", "all_full", "no_transceiver", "request_timeout"} <= told[name]
    for name in ("POST /v1/realtime/calls", "POST /v1/realtime"):
        assert {"bad_form", "bad_session"} <= told[name]
    assert {"api_key_needed", "owner_gone"} <= told["DELETE /v1/realtime/calls/{call_id}"]
    assert {"too_many_keys", "keys_unavailable"} <= told["POST /v1/realtime/client_secrets"]
