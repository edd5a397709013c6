"""Real speech through a bad network: 5 % random loss and 30 ms jitter, each way.

How much later than without loss and jitter speech comes back, and how good is what stands in for
the packets that the client's side of the network lost. Which those were is known: the hop's
schedule depends on its seed alone, and is played once more here. The client codes with FEC, as
browsers do; what libopus makes up without it is stated beside the figures.
"""

from collections.abc import Sequence

import numpy as np

from tests.audio import compressed, repair, score
from tests.audio.listening import Heard, through_buffer
from tests.audio.repair import ECHOED
from tests.audio.take import Take, record
from tests.audio.wire_to_wire import spread
from tests.figures.measurement import PREFIX, Findings, Measurement, expect
from tests.lab import ear, speech
from tests.lab.deployment import deploy
from tests.lab.frame import Kind
from tests.lab.impairment import UP, Frame, Impairment, Rule
from tests.report import Target

SECONDS = 30.0
LOSS = 0.05
JITTER_S = 0.03
RTP = frozenset({Kind.RTP})
CALM = Rule(kinds=RTP, delay_s=JITTER_S)
BAD = Rule(kinds=RTP, delay_s=JITTER_S, jitter_s=JITTER_S, drop=LOSS)
SEED = 1  # the hop's own, unless told otherwise
BUFFERS_MS = (40, 80, 120)
TARGETS = (
    Target("loss_and_jitter_delay_p95", "≤", 80, "ms"),
    Target("loss_and_jitter_repair_error", "≤", 0.8),
    Target("loss_and_jitter_fec_error", "≤", 0.4),
)


def measurements() -> list[Measurement]:
    return [Measurement("loss_and_jitter", TARGETS, measure)]


def measure(seconds: float = SECONDS, prefix: str = PREFIX) -> Findings:
    notes = score.encode(speech.spoken(seconds), fec=True)
    with deploy("xdp", prefix, faults=True) as place:
        assert place.lab is not None
        place.lab.hop.set_rules(CALM)
        (calm,) = record(place.site, notes)
        place.lab.hop.set_rules(BAD)
        (harmed,) = record(place.site, notes)
        dropped = place.lab.hop.count(UP, "rtp", "dropped")
    lost = lost_of(len(notes), BAD)
    expect(dropped == len(lost), f"{dropped} packets were lost, not {len(lost)}")
    base = float(np.nanmedian(calm.packet_delays()))
    later_ms = (harmed.packet_delays() - base) * 1e3
    later_ms = later_ms[~np.isnan(later_ms)]
    expect(len(later_ms) > (1 - 2 * LOSS) * len(notes), f"{len(later_ms)} packets came back")
    by_fec = [n for n in lost if followed_by_a_copy(notes, n, lost)]
    expect(harmed.came, "nothing came back")
    values, detail = judge(calm, harmed, lost, by_fec)
    return Findings(
        {"loss_and_jitter_delay_p95": float(np.percentile(later_ms, 95)), **values},
        {
            "packets": len(notes),
            "lost": len(lost),
            "came_back": len(later_ms),
            "later_ms": spread(later_ms),
            **detail,
            "error_without_fec": without_fec(seconds, lost),
        },
    )


def judge(
    calm: Take, harmed: Take, lost: Sequence[int], by_fec: Sequence[int]
) -> tuple[dict[str, float | None], dict[str, object]]:
    """Errors of what was repaired, as heard; and that the talk is the same."""
    reference, heard = calm.heard(), harmed.heard()
    alike = ear.correlate(reference.samples, heard.samples, speech.RATE)
    expect(alike.windows and alike.median > 0.7, f"what came back is not what was said: {alike}")
    repaired = [
        number
        for number in repair.spoken_frames(reference.samples, lost, ECHOED)
        if repair.came_whole(heard.came, number, ECHOED)
    ]
    copied = [number for number in repaired if number in by_fec]
    expect(copied, "no packet was lost whose follower carried a copy")
    values = {
        "loss_and_jitter_repair_error": repair.error(
            reference.samples, heard.samples, repaired, ECHOED
        ),
        "loss_and_jitter_fec_error": repair.error(reference.samples, heard.samples, copied, ECHOED),
    }
    detail = {
        "repaired_in_speech": len(repaired),
        "of_these_by_fec": len(copied),
        "likeness_to_the_calm_run": {"median": alike.median, "min": alike.min},
        "lag_drift_ms": alike.lag_drift_ms,
        "likeness_behind_a_buffer": {
            f"{ms} ms": round(behind_a_buffer(reference, heard, ms / 1000), 3) for ms in BUFFERS_MS
        },
    }
    return values, detail


def behind_a_buffer(calm: Heard, harmed: Heard, depth_s: float) -> float:
    """Likeness of what a client with a buffer of this depth plays to the calm run; what comes too
    late for it is silence."""
    return ear.correlate(calm.samples, through_buffer(harmed, depth_s), speech.RATE).median


def without_fec(seconds: float, lost: Sequence[int]) -> float | None:
    """Error of concealment alone: the same losses, a client without FEC, in compressed time."""
    notes = score.encode(speech.spoken(seconds))
    calm, harmed = (
        np.repeat(compressed.travel(each).samples(), 2)
        for each in (notes, score.without(notes, lost))
    )
    return repair.error(calm, harmed, repair.spoken_frames(calm, lost, 0), 0)


def lost_of(count: int, rule: Rule, seed: int = SEED) -> list[int]:
    """Which of `count` packets of one client, numbered from 0, the hop loses under this rule."""
    schedule, client = Impairment([rule], seed), ("10.1.0.2", 1)
    frame = Frame(UP, Kind.RTP, client, 200)
    return [n for n in range(count) if not schedule.decide(frame, n * 0.02)]


def followed_by_a_copy(notes: score.Score, number: int, lost: Sequence[int]) -> bool:
    """Whether the packet behind a lost one came and carried a copy of it."""
    after = number + 1
    return after < len(notes) and after not in lost and score.carries_fec(notes[after].payload)
