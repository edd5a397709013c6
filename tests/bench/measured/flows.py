"""How the rate falls with the number of flows, and what a flow takes of memory."""

import re
from functools import partial
from itertools import product
from pathlib import Path

from relayctl.datapath.bpf_map import Map
from tests.bench import rates
from tests.bench.effort import Effort
from tests.bench.measured.ways import SPP, open_stage, stage_of
from tests.bench.rig import Rig
from tests.bench.subjects.bare import Bare
from tests.bench.subjects.ferryline import Ferryline
from tests.figures.measurement import Findings, Measurement
from tests.report import Target, Value

SIZES = (1, 1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20)
THOUSAND, MILLION = 1 << 10, 1 << 20
TARGETS = (
    Target("million_vs_thousand", "≥", 0.5),
    Target("bytes_per_flow", "≤", 200.0, "B"),
)


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("flows", TARGETS, partial(measure, effort))]


def measure(effort: Effort) -> Findings:
    found: dict[str, dict[int, list[float]]] = {"SPP": {}, "bare": {}}
    with (
        Rig() as rig,
        stage_of(rig, SPP, max_flows=MILLION) as subject,
        open_stage(rig, Bare(rig, SPP.legs)) as bare,
    ):
        stages = {"bare": bare, "SPP": subject}
        for _, size, name in product(range(effort.pairs), SIZES, stages):
            with stages[name].on(size):
                rate = rates.lossless_rate(stages[name], size).lossless
            found[name].setdefault(size, []).append(rate)
        assert isinstance(subject.subject, Ferryline)
        bytes_per_flow = memory(subject.subject) / MILLION
    many = rates.Pairs(found["SPP"][MILLION], found["SPP"][THOUSAND])
    values: dict[str, Value] = {
        "million_vs_thousand": many.ratio,
        "bytes_per_flow": bytes_per_flow,
    }
    return Findings(values, {"rates_by_flows": found})


def memory(relay: Ferryline) -> int:
    """Bytes that the kernel charges for the flow table."""
    with Map.open(relay.spec.pins / "flows_v4") as table:
        text = Path(f"/proc/self/fdinfo/{table.fd}").read_text()
    found = re.search(r"^memlock:\s*(\d+)", text, re.MULTILINE)
    assert found is not None, text
    return int(found[1])
