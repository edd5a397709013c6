"""From the offer that goes out to the first RTP packet that comes back, and whose time it is.

The transceiver speaks first. The ideal is one round trip of HTTP over a connection that is open,
one of ICE and two of DTLS, with whose last flight the first packet can come: four round trips of
the path, which are measured in the same run. `path` is the round trip that the fault hop adds, half
of it each way; it holds for HTTP too.
"""

import dataclasses
import json
import re
import socket
import statistics
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from tests.bench_signaling.effort import Effort
from tests.bench_signaling.own_share import Share, Watch
from tests.browser import browser
from tests.figures.measurement import Findings, Measurement, expect
from tests.lab.deployment import Deployment, deploy
from tests.lab.frame import Kind
from tests.lab.impairment import Rule
from tests.report import Target

PREFIX = "bs-"
PATHS_MS = (1, 40, 100)  # round trip
ROUND_TRIPS = 4
EXTRA_MS = {"chromium": 60, "firefox": 80, "lean": 50}
OWN_MS = 15
SHARES = ("answer", "check", "flight")
PHASES = ("answer", "ice", "dtls", "rtp")
CONNECTS = 20

_ANSWERED = re.compile(r"POST /v1/realtime/calls 201 ([0-9.]+)ms")

Marks = dict[str, float]  # milliseconds from the offer to the end of each phase


def measurements(effort: Effort) -> list[Measurement]:
    return [
        Measurement(f"setup_{client}", _targets(client), partial(measure, client, effort))
        for client in EXTRA_MS
    ]


def _targets(client: str) -> tuple[Target, ...]:
    return (
        *(
            Target(f"setup_{client}_extra_{path}ms", "≤", EXTRA_MS[client], "ms")
            for path in PATHS_MS
        ),
        *(Target(f"own_share_{share}_{client}", "≤", OWN_MS, "ms") for share in SHARES),
    )


def _extra(client: str, path_ms: int) -> str:
    return f"setup_{client}_extra_{path_ms}ms"


def measure(client: str, effort: Effort) -> Findings:
    with deploy("xdp", PREFIX, echo="paced", faults=True) as place:
        rtts = {path: _rtt_ms(place, path) for path in PATHS_MS}
        with Watch(place.site.transceiver, "eth0") as watch:
            calls = _lean(place, effort) if client == "lean" else _browser(place, client, effort)
        answers = [float(ms) for ms in _ANSWERED.findall(place.services.signaling.log.read_text())]
    paths = {path: account(calls[path], rtts[path]) for path in PATHS_MS}
    own = own_share(answers, watch.share)
    return Findings(
        {
            **{_extra(client, path): paths[path]["extra"]["p50"] for path in PATHS_MS},
            **{f"own_share_{share}_{client}": own[share]["p50"] for share in SHARES},
        },
        {"paths": paths, "own": own},
    )


def account(calls: Sequence[Marks], rtt_ms: float) -> dict[str, Any]:
    """Quantiles of the whole, of what is beyond the ideal, and of each phase by itself."""
    total = [call["rtp"] for call in calls]
    ends = [[0.0, *(call[phase] for phase in PHASES)] for call in calls]
    return {
        "calls": len(calls),
        "rtt_ms": round(rtt_ms, 2),
        "ideal_ms": round(ROUND_TRIPS * rtt_ms, 1),
        "total": quantiles(total),
        "extra": quantiles([each - ROUND_TRIPS * rtt_ms for each in total]),
        "phases": {
            phase: quantiles([end[n + 1] - end[n] for end in ends])
            for n, phase in enumerate(PHASES)
        },
    }


def own_share(answers: Sequence[float], share: Share) -> dict[str, dict[str, float]]:
    """Of signaling with the transceiver behind it, and of the transceiver alone."""
    expect(answers and share.check_ms and share.flight_ms, "nothing was seen of the transceiver")
    return {
        "answer": quantiles(answers),
        "check": quantiles(share.check_ms),
        "flight": quantiles(share.flight_ms),
    }


def quantiles(values: Sequence[float]) -> dict[str, float]:
    p95 = statistics.quantiles(values, n=20, method="inclusive")[-1] if values[1:] else values[0]
    return {"p50": round(statistics.median(values), 1), "p95": round(p95, 1)}


def _rules(path_ms: float) -> tuple[Rule, ...]:
    return (Rule(kinds=frozenset(Kind), delay_s=path_ms / 2e3),)


def _rtt_ms(place: Deployment, path_ms: float) -> float:
    """The shortest of some TCP connects to signaling: what is more is no length of the path."""
    assert place.lab is not None
    place.lab.hop.set_rules(*_rules(path_ms))
    took = []
    for _ in range(CONNECTS):
        with place.site.client.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            began = time.monotonic()
            sock.connect(place.site.signaling_address)
            took.append((time.monotonic() - began) * 1e3)
    return min(took)


def _lean(place: Deployment, effort: Effort) -> dict[int, list[Marks]]:
    assert place.lab is not None
    site, calls = place.site, {}
    for path in PATHS_MS:
        place.lab.hop.set_rules(*_rules(path))
        argv = ["--url", site.calls_url, "--host", site.client_host, "--calls", str(effort.calls)]
        program = site.client.python(
            "lean-setups", "tests.bench_signaling.lean_setups", *argv, piped=True
        )
        output, _ = program.process.communicate(timeout=60 + 3 * effort.calls)
        expect(program.stop() == 0, f"the lean client failed\n{program.tail()}")
        calls[path] = [
            {phase: marks[name] for phase, name in zip(PHASES, _LEAN, strict=True)}
            for marks in json.loads(output)
        ]
    return calls


_LEAN = ("answer_ms", "ice_ms", "dtls_ms", "first_audio_ms")


def _browser(place: Deployment, client: str, effort: Effort) -> dict[int, list[Marks]]:
    assert place.lab is not None
    hop = place.lab.directory / "hop.sock"
    options = {
        "url": f"{place.site.base_url}/",
        "browser": client,
        "calls": effort.calls,
        "rounds": [browser.tell_hop(hop, _command(path)) for path in PATHS_MS],
    }
    limit_s = 60 + 3 * 3.0 * effort.calls
    here = browser.SCENARIOS.parent / "bench_signaling"
    report = browser.run(place.site.client, "setups", options, limit_s, here)
    for calls in report["rounds"]:
        for call in calls:
            expect("late" not in call, f"{client} came only so far in 10 s: {call.get('late')}")
    return dict(zip(PATHS_MS, report["rounds"], strict=True))


def _command(path_ms: float) -> dict[str, Any]:
    rules = [dataclasses.asdict(rule) | {"kinds": sorted(rule.kinds)} for rule in _rules(path_ms)]
    return {"op": "rules", "rules": rules}
