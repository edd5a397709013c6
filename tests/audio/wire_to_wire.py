"""How long speech is on its way to the model that echoes it, and back: chirps from a probe client.

From the moment at which a sample is spoken until it is back at an ear without a buffer. The 20 ms
that a packet collects and what both coders look ahead, 6.5 ms each, are inside. What a voice that
is played out at a clock of its own takes longer is stated beside it.
"""

from collections.abc import Sequence

import numpy as np

from tests.audio import score
from tests.audio.chirp import Chirps, chirps
from tests.audio.take import Moment, Take, record
from tests.figures.measurement import PREFIX, Findings, Measurement, expect
from tests.lab.deployment import deploy
from tests.lab.ear import Row
from tests.lab.service_config import Echo
from tests.report import Target

SECONDS = 10.0
TARGETS = (Target("wire_to_wire_p95", "≤", 45, "ms"),)


def measurements() -> list[Measurement]:
    return [Measurement("wire_to_wire", TARGETS, measure)]


def measure(seconds: float = SECONDS, prefix: str = PREFIX) -> Findings:
    signal = chirps(seconds)
    echoed = _play(signal, "audio", prefix).delays(signal)
    paced = _play(signal, "paced", prefix).delays_by_the_clock(signal)
    for heard in (echoed, paced):
        expect(
            len(heard) >= 0.9 * len(signal.starts), f"{len(heard)} of {len(signal.starts)} heard"
        )
    return Findings(
        {"wire_to_wire_p95": float(np.percentile(_ms(echoed), 95))},
        {
            "sweeps": len(signal.starts),
            "heard": len(echoed),
            "delay_ms": spread(_ms(echoed)),
            "of_that_coders_ms": round(float(np.median([m.shift for m in echoed])) / 48, 2),
            "of_that_packet_ms": 20,
            "paced_delay_ms": spread(_ms(paced)),
        },
    )


def _play(signal: Chirps, echo: Echo, prefix: str) -> Take:
    with deploy("xdp", prefix, echo=echo) as place:
        (take,) = record(place.site, score.encode(signal.samples))
    return take


def _ms(moments: Sequence[Moment]) -> Row:
    return np.array([each.delay_s for each in moments]) * 1e3


def spread(values: Row) -> dict[str, float]:
    """For people."""
    shares = {"min": 0, "p50": 50, "p95": 95, "max": 100}
    return {name: round(float(np.percentile(values, at)), 2) for name, at in shares.items()}
