"""Ten thousand offers whose clients never come: what is left of them?

Real signaling and transceiver on loopback; the transceiver forgets an offer after `setup_s`
(configuration), which is short here so that a process, which has at most 1,000 such calls, has room
for the next ones. Every tenth client leaves without waiting for the answer.

Left over is what the two hold afterwards beyond what they held after a first round of offers: open
descriptors, sockets, calls, entries of the mux, tasks, objects of calls and connections. Memory is
the growth of both processes in the second half: allocators and the bounded tables (ended calls,
limits by address) fill up in the first.
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
    Target("abandoned_offers_memory", "≤", 3, "MB"),
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
        before = _look(services)
        statuses = _offers(services, count // 2)
        memory = _memory(services)
        statuses += _offers(services, count - count // 2)
        after, now = _look(services), _memory(services)
    left, grown = left_over(before, after), {name: now[name] - memory[name] for name in now}
    answered = statuses["201"] + statuses["left"]
    expect(answered == count, f"of {count} offers: {dict(statuses)}")
    return Findings(
        {
            "abandoned_offers_left": sum(left.values()),
            "abandoned_offers_memory": round(sum(grown.values()) / 1e3, 1),
        },
        {
            "sent": {"offers": count, "statuses": dict(statuses)},
            "setup_s": SETUP_S,
            "before": before,
            "after": after,
            "left": left,
            "memory_kb": {"half": memory, "grown": grown},
        },
    )


def _offers(services: Services, count: int) -> Counter[str]:
    """Send them, and wait until they are forgotten; what came of them."""
    argv = [sys.executable, "-m", "tests.bench_signaling.offers"]
    argv += ["--url", services.site.calls_url, "--impatient", str(IMPATIENT)]
    argv += ["--rate", str(RATE), "--seconds", str(count / RATE)]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=600, cwd=REPOSITORY)
    time.sleep(SETUP_S + KEPT_S)
    return Counter(json.loads(done.stdout)["statuses"])


def _look(services: Services) -> Held:
    programs: Mapping[str, Program] = services.programs
    return {
        **{f"transceiver: {k}": n for k, n in _ask(programs["transceiver"]).items()},
        **{f"signaling: {k}": n for k, n in _ask(programs["signaling"]).items()},
        "flows": len(services.flows()),
    }


def _ask(program: Program) -> Held:
    return {**counted_transceiver.ask(program), "TCP sockets": program.sockets("tcp")}


def _memory(services: Services) -> dict[str, int]:
    """Anonymous memory of both, in kB."""
    memory = {}
    for program in (services.transceiver, services.signaling):
        status = Path(f"/proc/{program.pid}/status").read_text()
        memory[program.name] = sum(map(int, re.findall(r"RssAnon:\s+(\d+)", status)))
    return memory
