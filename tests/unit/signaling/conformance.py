"""Does the service keep to its own `/openapi.json`? Requests made from it, good and bad, by
Schemathesis, in this process and with a transceiver that is none.

`examine()` is for longer runs too: `tests/bench_signaling` reports what it returns.
"""

import random
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import schemathesis
from fastapi import FastAPI
from hypothesis import strategies as st
from schemathesis.engine import from_schema
from schemathesis.engine.events import FatalError, NonFatalError, ScenarioFinished

from relayctl.wire import call_id
from relayctl.wire.route_token import Route, mint
from signaling.app import create_app
from signaling.faces.described import SDP
from signaling.faces.sdp_fragment import SDP_FRAGMENT
from signaling.refusal import Code
from tests.unit.signaling.fake_transceiver import (
    CONFIG,
    KEY,
    OFFER,
    SECRET,
    FakeTransceiver,
    Through,
    configuration,
    transceiver_client,
)
from tests.unit.signaling.live import API_KEY, api_key

IN_CALL = call_id.CallId(mint(KEY, Route(7, 0x0A020002, 5000, bytes(3))), SECRET).render()
UNKNOWN = IN_CALL[:-4] + "AAAA"
CANDIDATE = "candidate:1 1 udp 2130706431 192.0.2.1 50000 typ host"
FRAGMENT = (
    f"a=ice-ufrag:abcd\r\na=ice-pwd:{'p' * 24}\r\n"
    f"m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\na={CANDIDATE}\r\n"
)
GUARDED = f"{CONFIG}{api_key('me', API_KEY)}[limits]\noffers_per_minute_per_address = 0\n"


schemathesis.openapi.format("sdp", st.just(OFFER))
schemathesis.openapi.format("sdp-fragment", st.just(FRAGMENT))
schemathesis.openapi.format("ice-candidate", st.just(CANDIDATE))
schemathesis.openapi.format("call-id", st.just(IN_CALL) | st.just(UNKNOWN))


@schemathesis.serializer(SDP, SDP_FRAGMENT)
def as_text(context: schemathesis.SerializationContext, value: Any) -> bytes:
    return str(value).encode(errors="replace")


@dataclass
class Outcome:
    """`statuses` counts answers; `server_errors` and `violations` say what was wrong, each once."""

    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    operations: set[str] = field(default_factory=set)
    server_errors: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


def service(config: str = GUARDED) -> FastAPI:
    """Signaling with keys asked for, and room for every request."""
    client = transceiver_client(FakeTransceiver(ids={IN_CALL: OFFER}))
    return create_app(
        configuration(config),
        client,
        exchange=Through(client),
        keys={KEY.id: KEY},
        dice=random.Random(1),
    )


def examine(examples: int = 20, seed: int = 1, app: FastAPI | None = None) -> Outcome:
    """Every operation: its examples, the edges of its parameters, and `examples` made up."""
    config: Any = schemathesis.Config.from_dict(
        {
            "seed": seed,
            "headers": {"Authorization": f"Bearer {API_KEY}"},
            "generation": {"deterministic": True, "max-examples": examples, "no-shrink": True},
            "phases": {"stateful": {"enabled": False}},
            "operations": [
                # There are no telephone calls; and what an If-Match has to match moves.
                {
                    "include-path-regex": "/(accept|reject|refer)$|^/whip/",
                    "checks": {"positive_data_acceptance": {"enabled": False}},
                }
            ],
        }
    )
    outcome = Outcome()
    with warnings.catch_warnings(), patch("signaling.access.access.FAILED_PER_MINUTE", 1_000_000):
        warnings.simplefilter("ignore")  # of the tool about itself
        app = app or service()
        told = codes(app.openapi())
        schema = schemathesis.openapi.from_asgi("/openapi.json", app, config=config)
        for event in from_schema(schema).execute():
            if isinstance(event, FatalError):
                raise event.exception
            if isinstance(event, NonFatalError):
                outcome.violations.append(f"{event.label}: {event.value}")
            if isinstance(event, ScenarioFinished):
                _count(event, outcome, told.get(event.label or "", frozenset()))
    return outcome


def codes(document: dict[str, Any]) -> dict[str, frozenset[str]]:
    """What each operation says that it may be refused with."""
    return {
        f"{method.upper()} {path}": frozenset(
            code.strip("`")
            for response in operation["responses"].values()
            for code in response["description"].split(", ")
        )
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }


def _code(response: schemathesis.Response) -> str:
    """Of a refusal that is the operation's own, and was not thought of by a transceiver."""
    if response.status_code < 400:
        return ""
    code = str(response.json()["error"]["code"])
    routers = (Code.METHOD_NOT_ALLOWED, Code.NO_SUCH_ROUTE)
    return code if code in tuple(Code) and code not in routers else ""


def _count(event: ScenarioFinished, outcome: Outcome, told: frozenset[str]) -> None:
    if event.label is not None:
        outcome.operations.add(event.label)
    for interaction in event.recorder.interactions.values():
        if interaction.response is not None:
            outcome.requests += 1
            outcome.statuses[interaction.response.status_code] += 1
            if interaction.response.status_code >= 500:
                _note(outcome.server_errors, f"{event.label}: {interaction.response.status_code}")
            code = _code(interaction.response)
            if code and code not in told:
                _note(outcome.violations, f"{event.label}: {code} is not told")
    for checks in event.recorder.checks.values():
        for check in checks:
            if check.failure_info is not None:
                failure = check.failure_info.failure
                _note(
                    outcome.violations,
                    f"{event.label}: {check.name}: {failure.title}: {failure.message[:300]}",
                )


def _note(notes: list[str], note: str) -> None:
    if note not in notes:
        notes.append(note)
