"""Does the transceiver know what was heard of a reply that was cut? A reference ear tells.

The ear plays a reply through a buffer: its first sample sounds `depth` after the first packet came,
and the rest follows in time. What it had played at the moment of the decision, on the server's side
of the way, is held against `audio_end_ms` of `conversation.item.truncated`. What still lies in its
buffer or is on its way then was not heard by somebody who had begun to speak, though it sounds.
By default the transceiver takes 40 ms for the buffer; told the depth, it takes that.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from tests.audio.wire_to_wire import spread
from tests.conversations import interruptions
from tests.conversations.effort import Effort
from tests.conversations.interruptions import Interruption
from tests.conversations.service import Service
from tests.figures.measurement import Findings, Measurement, expect
from tests.report import Target

CALLERS = 6  # at the same time
DEPTHS_MS = (20, 60, 120)
WAY_S = 0.03  # each way, in one of the takes
TARGETS = (
    *(Target(f"position_default_{depth}_p95", "≤", 40, "ms") for depth in DEPTHS_MS),
    *(Target(f"position_told_{depth}_p95", "≤", 20, "ms") for depth in DEPTHS_MS),
    Target("position_told_far_p95", "≤", 20, "ms"),
)


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("position", TARGETS, partial(measure, effort))]


def measure(effort: Effort) -> Findings:
    values: dict[str, float | str | bool | None] = {}
    detail: dict[str, object] = {}

    def keep(name: str, found: Sequence[Interruption], depth_ms: int) -> None:
        wrong = errors(found, depth_ms / 1000)
        expect(wrong, f"{name}: of {len(found)} interruptions none cut a reply")
        values[f"position_{name}_p95"] = float(np.percentile(np.abs(wrong), 95))
        detail[name] = {"cut": len(wrong), "error_ms": spread(np.array(wrong))}

    by_default = _record(effort, None)
    for depth in DEPTHS_MS:
        keep(f"default_{depth}", by_default, depth)
    for depth in DEPTHS_MS:
        keep(f"told_{depth}", _record(effort, depth), depth)
    keep("told_far", _record(effort, DEPTHS_MS[1], WAY_S), DEPTHS_MS[1])
    return Findings(values, detail)


def errors(found: Sequence[Interruption], depth_s: float) -> list[float]:
    """Milliseconds that the transceiver says too much, for each reply that was cut."""
    pairs = ((each.told_ms, each.played_ms(depth_s)) for each in found)
    return [told - played for told, played in pairs if told is not None and played is not None]


def _record(effort: Effort, told_ms: int | None, way_s: float = 0.0) -> list[Interruption]:
    sections = {} if told_ms is None else {"session": {"client_buffer_ms": told_ms}}
    with Service("parrot", sections) as service:
        return interruptions.record(service, effort.cuts, callers=CALLERS, way_s=way_s, seed=2)
