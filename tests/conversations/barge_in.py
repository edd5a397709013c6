"""How fast a reply falls silent when somebody talks into it: real packets of a real process.

From the first packet of speech that a caller sends to the last packet with sound that arrives; and
from the decision, which is the event `speech_started`, to the same. A packet has sound if an ear
that decodes it hears more than -40 dB of full scale.
"""

from functools import partial

import numpy as np

from tests.audio.wire_to_wire import spread
from tests.conversations import interruptions
from tests.conversations.effort import Effort
from tests.conversations.service import Service
from tests.figures.measurement import Findings, Measurement, expect
from tests.report import Target

TARGETS = (
    Target("interruptions", "≥", 50),
    Target("words_unnoticed", "=", 0),
    Target("barge_in_p95", "≤", 120, "ms"),
    Target("flush_p95", "≤", 20, "ms"),
)


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("barge_in", TARGETS, partial(measure, effort))]


def measure(effort: Effort) -> Findings:
    with Service("parrot") as service:
        found = interruptions.record(service, effort.interruptions)
    took = [each.took_ms for each in found if each.took_ms is not None]
    flush = [each.flush_ms for each in found if each.flush_ms is not None]
    decision = [each.decision_ms for each in found if each.decision_ms is not None]
    expect(took and flush, f"of {len(found)} interruptions none cut a reply that sounded")
    return Findings(
        {
            "interruptions": len(took),
            "words_unnoticed": sum(each.decided_at is None for each in found),
            "barge_in_p95": float(np.percentile(took, 95)),
            "flush_p95": float(np.percentile(flush, 95)),
        },
        {
            "words": len(found),
            "in_a_pause": sum(not each.sounded for each in found),
            "decision_ms": spread(np.array(decision)),
            "took_ms": spread(np.array(took)),
            "flush_ms": spread(np.array(flush)),
            "all_ms": [round(each, 1) for each in took],
        },
    )
