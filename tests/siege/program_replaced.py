"""The program is replaced again and again at half the load that the rig carries without a loss."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

from relayctl.config import RelayConfig
from relayctl.control.kernel_side import spec_of
from relayctl.control.netlink import Kernel
from relayctl.datapath import links, xdp
from relayctl.datapath.libbpf import Program, xdp_on
from relayctl.datapath.spec import Spec
from relayctl.wire.settings import load
from tests.figures.measurement import Findings, Measurement, expect
from tests.lab import relay_counts
from tests.report import Target
from tests.siege.newcomers import Echo
from tests.siege.stage import Stage, lost, stage, talk
from tests.siege.stream import Stream, burst_for, stream

TIMES = 200
PAUSE_S = 0.02  # between two replacements
LOAD = 0.5  # of the rate that the rig carries without a loss
TARGETS = (
    Target("program_replaced", "=", TIMES, "times"),
    Target("program_replaced_lost", "=", 0, "packets"),
    Target("program_replaced_load", "≥", LOAD * 0.8, "of the lossless rate"),
)


def measurements(quick: bool) -> list[Measurement]:
    return [Measurement("program_replaced", TARGETS, partial(measure, TIMES))]


def measure(times: int) -> Findings:
    with stage() as scene, scene.calls() as lean:
        spec = scene.site.relay.call(lambda: _spec(scene))
        echo = Echo(scene.site.transceiver, scene.site.endpoint[0])
        with echo, stream(scene, echo, scene.site.transceiver, "eth0") as load:
            sustained = load.lossless_rate()
            counts = relay_counts.settled(scene.services)
            unharmed = lost(lean)  # the search overruns cables
            with Program.open(spec.pins / "program") as old:
                scene.site.relay.call(lambda: xdp.load(spec))
                with Program.open(spec.pins / "program") as new:
                    expect(old.id != new.id, "the new program is the old one")
                    idle = _replace(scene, spec, load, sustained * LOAD, [old], times)
                    found = _replace(scene, spec, load, sustained * LOAD, [old, new], times)
            counted = relay_counts.settled(scene.services).since(counts)
        harm = {way: count - unharmed[way] for way, count in lost(lean).items()}
        heard = talk(lean)
    expect(found.sent > times, "the stream ran dry")
    return Findings(
        {
            "program_replaced": times,
            "program_replaced_lost": found.sent - found.arrived + sum(harm.values()),
            "program_replaced_load": round(found.rate / sustained, 2),
        },
        {"sustained_rate": round(sustained), "stream": asdict(found), "lost": harm}
        | {"stream_without_replacement": asdict(idle), "lost_by_search": unharmed}
        | {"talk": heard, "counted": counted.nonzero()},
    )


@dataclass(frozen=True)
class _Streamed:
    sent: int
    arrived: int
    rate: float


def _replace(
    scene: Stage, spec: Spec, load: Stream, rate: float, programs: Sequence[Program], times: int
) -> _Streamed:
    """`programs` take turns on every interface, the last one first, while the stream goes on. A
    single one stays: what is lost then is no fault of a replacement."""

    def replace() -> None:
        for number in range(times):
            program = programs[(number + 1) % len(programs)]
            for each in spec.interfaces:
                links.attach(spec.pins.parent, each.name, each.carrier, program, spec.mode)
            time.sleep(PAUSE_S)
            on = {xdp_on(each.carrier).native for each in spec.interfaces}
            expect(on == {program.id}, f"programs {on} are attached, not {program.id}")

    before = load.sink.seen().packets
    with load.source.going_on(rate, burst_for(rate)) as sent:
        scene.site.relay.call(replace)
    time.sleep(PAUSE_S)
    return _Streamed(sent[0].frames, load.sink.seen().packets - before, sent[0].rate)


def _spec(scene: Stage) -> Spec:
    """What the relay's own program was compiled for."""
    config = load(RelayConfig, toml=(scene.site.directory / "relay.toml").read_text())

    async def make() -> Spec:
        kernel = Kernel()
        try:
            return await spec_of(config, kernel)
        finally:
            kernel.close()

    return asyncio.run(make())
