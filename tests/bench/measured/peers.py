"""Ferryline beside other relays on the same rig: rate, CPU time per packet, delay."""

import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from relayctl.datapath.libbpf import BpfError
from tests.bench import rates
from tests.bench.effort import Effort
from tests.bench.measured.ways import SPP, open_stage, stage_of
from tests.bench.rig import Rig
from tests.bench.subjects.bare import Bare
from tests.bench.subjects.base import NotRun, Subject
from tests.bench.subjects.coturn import coturn
from tests.bench.subjects.direct import Direct
from tests.bench.subjects.go_relay import go_relay
from tests.bench.subjects.nat import Nat
from tests.bench.subjects.nginx import nginx
from tests.bench.subjects.socket_relay import socket_relay
from tests.bench.trial import Stage
from tests.figures.measurement import Findings, Measurement, MeasurementError
from tests.lab.program import ProgramError
from tests.report import Target, Value

_PACKAGES = ("nftables", "golang-go", "coturn", "nginx-light")
TARGETS = (
    Target("rate_vs_go", "≥", 12.0),
    Target("cpu_vs_go", "≤", 1 / 12),
    Target("rate_vs_nat_100", "≥", 3.5),
    Target("rate_vs_nat_10k", "≥", 4.5),
)


@dataclass(frozen=True)
class Peer:
    key: str
    make: Callable[[Rig], Subject]
    flows: int
    aimed: bool = False  # there is a target for it


PEERS = (
    Peer("bare", lambda rig: Bare(rig, SPP.legs), 1024),
    Peer("nat_100", Nat, 100, True),
    Peer("nat_10k", Nat, 10_000, True),
    Peer("go", go_relay, 1024, True),
    Peer("socket", socket_relay, 1024),
    Peer("coturn", coturn, 100),
    Peer("nginx", nginx, 1024),
)


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("peers", TARGETS, partial(measure, effort))]


def measure(effort: Effort) -> Findings:
    rows: dict[str, dict[str, Any]] = {}
    with Rig() as rig:
        with open_stage(rig, Direct(SPP.legs)) as stage, stage.on(0):
            direct = rates.cpu_ns(stage, 1024, rates.lossless_rate(stage, 1024), 0.0)
        with stage_of(rig, SPP) as ours:
            with ours.on(1024):
                rows["ferryline"] = _describe(ours, 1024, direct)
            for peer in PEERS:
                rows[peer.key] = _beside(rig, ours, peer, effort, direct)
    values: dict[str, Value] = {
        f"rate_vs_{key}": rows[key]["ratio"]
        for key in ("go", "nat_100", "nat_10k")
        if "ratio" in rows[key]
    }
    if "cpu_ns" in rows["go"]:
        values["cpu_vs_go"] = rows["ferryline"]["cpu_ns"] / rows["go"]["cpu_ns"]
    return Findings(values, {"direct_ns": direct, "peers": rows, "packages": packages()})


def packages() -> str:
    """The peers' Debian packages and versions, those that are installed."""
    command = ["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *_PACKAGES]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return "not Debian's"
    return ", ".join(line for line in told.splitlines() if not line.endswith(" "))


def _beside(rig: Rig, ours: Stage, peer: Peer, effort: Effort, direct: float) -> dict[str, Any]:
    """The row of one peer, or why there is none."""
    try:
        with open_stage(rig, peer.make(rig)) as theirs:
            count = effort.pairs if peer.aimed else effort.side_pairs
            pairs = rates.in_turn(ours, theirs, peer.flows, count)
            with theirs.on(peer.flows):
                row = _describe(theirs, peer.flows, direct, max(pairs.reference))
    except (NotRun, MeasurementError, BpfError, ProgramError) as reason:
        return {"not_run": str(reason)}
    return row | {"ratio": pairs.ratio, "pairs": asdict(pairs)}


def _describe(stage: Stage, flows: int, direct: float, rate: float = 0.0) -> dict[str, Any]:
    """The subject is on. `rate`: its lossless one if it is known."""
    found = rates.Rate(rate, False) if rate else rates.lossless_rate(stage, flows)
    if not found.lossless:
        raise NotRun("no rate at which it lost nothing")
    cpu = rates.cpu_ns(stage, flows, found, direct)
    delays = [rates.latency(stage, flows, found.lossless, load) for load in rates.LOADS]
    return {
        "name": stage.subject.name,
        "flows": flows,
        "rate": found.lossless,
        "cpu_ns": cpu,
        "latency": [asdict(each) for each in delays],
    }
