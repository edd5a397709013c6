"""Ten thousand offers whose clients never come: what is left of them?

Real signaling and transceiver on loopback; the transceiver forgets an offer after `setup_s`
(configuration), which is short here so that a process, which has at most 1,000 such calls, has room
for the next ones. Every tenth client leaves without waiting for the answer.

Left over is what the two hold afterwards beyond what they held after a first round of offers: open
descriptors, sockets, calls, entries of the mux, tasks, objects of calls and connections. Memory is
that of both processes, without what is shared.
"""

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench_signaling import counted_signaling
from tests.bench_signaling.effort import Effort
from tests.figures import counted_transceiver
from tests.figures.measurement import Findings, Measurement, expect
from tests.figures.thirty_calls import left_over
from tests.lab.node import REPOSITORY
from tests.lab.program import Program
from tests.lab.services import Services
from tests.lab.site import LoopbackPlace
from tests.report import Target

SETUP_S = 4.0
RATE = 150.0  # a second: SETUP_S of it are below 1,000
CAPACITY = 100_000
IMPATIENT = 10  # every n-th leaves at once
KEPT_S = 7.0  # connections between the two are kept for 5 s
PORT_BASE = 24590
TARGETS = (
    Target("abandoned_offers_left", "=", 0, "things"),
    Target("abandoned_offers_memory", "≤", 10, "MB"),
)

Held = dict[str, int]


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("abandoned_offers", TARGETS, partial(measure, effort.abandoned))]


def measure(count: int) -> Findings:
    with (
        LoopbackPlace("bs-loopback", PORT_BASE) as place,
        Services(
            place.site(),
            echo="paced",
            capacity=CAPACITY,
            setup_s=SETUP_S,
            transceiver_module=counted_transceiver.MODULE,
            signaling_module=counted_signaling.MODULE,
        ) as services,
    ):
        _offers(services, count // 10)
        _look(services)  # the first count imports and allocates
        _offers(services, count // 10)
        before, memory = _look(services), _memory(services)
        sent = _offers(services, count)
        after, grown = _look(services), _memory(services) - memory
    left = left_over(before, after)
    answered = sent["statuses"].get("201", 0) + sent["statuses"].get("left", 0)
    expect(answered == count, f"of {count} offers: {sent['statuses']}")
    return Findings(
        {
            "abandoned_offers_left": sum(left.values()),
            "abandoned_offers_memory": grown.total() / 1e3,
        },
        {
            "sent": sent,
            "setup_s": SETUP_S,
            "before": before,
            "after": after,
            "left": left,
            "memory_kb": {"before": memory, "grown": grown},
        },
    )


def _offers(services: Services, count: int) -> dict[str, Any]:
    """Send them, and wait until they are forgotten."""
    argv = [sys.executable, "-m", "tests.bench_signaling.offers"]
    argv += ["--url", services.site.calls_url, "--impatient", str(IMPATIENT)]
    argv += ["--rate", str(RATE), "--seconds", str(count / RATE)]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=600, cwd=REPOSITORY)
    time.sleep(SETUP_S + KEPT_S)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _look(services: Services) -> Held:
    programs: Mapping[str, Program] = services.programs
    return {
        **{f"transceiver: {k}": n for k, n in _ask(programs["transceiver"]).items()},
        **{f"signaling: {k}": n for k, n in _ask(programs["signaling"]).items()},
        "flows": len(services.flows()),
    }


def _ask(program: Program) -> Held:
    return {**counted_transceiver.ask(program), "TCP sockets": program.sockets("tcp")}


def _memory(services: Services) -> Counter[str]:
    """Anonymous memory of both, in kB."""
    memory: Counter[str] = Counter()
    for program in (services.transceiver, services.signaling):
        status = Path(f"/proc/{program.pid}/status").read_text()
        memory[program.name] = sum(map(int, re.findall(r"RssAnon:\s+(\d+)", status)))
    return memory
