"""Offers and requests that are not as they should be: does each get its reason, and no fault?"""

from functools import partial

from tests.bench_signaling import malformed
from tests.bench_signaling.effort import Effort
from tests.figures.measurement import Findings, Measurement
from tests.report import Target
from tests.unit.signaling import conformance

MALFORMED = (
    Target("malformed_offers", "≥", 200, "offers"),
    Target("malformed_offers_server_errors", "=", 0),
    Target("malformed_offers_without_a_reason", "=", 0),
)
SCHEMATHESIS = (Target("schemathesis_server_errors", "=", 0),)


def measurements(effort: Effort) -> list[Measurement]:
    return [
        Measurement("malformed_offers", MALFORMED, partial(measure_malformed, effort.malformed)),
        Measurement("schemathesis", SCHEMATHESIS, partial(measure_schemathesis, effort.examples)),
    ]


def measure_malformed(count: int) -> Findings:
    """A breach is an answer that names no reason, or a fault of the server."""
    report = malformed.measure(count)
    faults = report["server_errors"] + report["tracebacks"]
    return Findings(
        {
            "malformed_offers": report["offers"],
            "malformed_offers_server_errors": faults,
            "malformed_offers_without_a_reason": report["breaches"],
        },
        report,
    )


def measure_schemathesis(examples: int) -> Findings:
    outcome = conformance.examine(examples)
    return Findings(
        {"schemathesis_server_errors": len(outcome.server_errors)},
        {
            "requests": outcome.requests,
            "operations": sorted(outcome.operations),
            "statuses": {str(status): n for status, n in sorted(outcome.statuses.items())},
            "server_errors": outcome.server_errors,
            "violations": outcome.violations,
        },
    )
