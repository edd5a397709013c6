"""One packet of the client is lost: how soon is the gap repaired, and what do later packets pay?

Two calls at once lose the same packets, several seconds apart: one plays speech, to judge the
repair, one chirps, to read the delay of what follows. A run without loss is the control.
"""

import numpy as np

from tests.audio import repair, score
from tests.audio.chirp import Chirps, chirps
from tests.audio.take import Take, record
from tests.clients.opus_source import FRAME
from tests.figures.measurement import PREFIX, Findings, Measurement, expect
from tests.lab import speech
from tests.lab.deployment import deploy
from tests.lab.frame import Kind
from tests.lab.impairment import UP, Rule
from tests.report import Target

SECONDS = 8.0
EVERY = 75  # packets from one loss to the next, at least
APART_S = 0.1  # of a sweep from the loss: neither holds part of the other
TARGETS = (
    Target("lost_packet_repaired_after", "≤", 60, "ms"),
    Target("lost_packet_added_to_later", "<", 1, "ms"),
)


def measurements() -> list[Measurement]:
    return [Measurement("lost_packet", TARGETS, measure)]


def measure(seconds: float = SECONDS, prefix: str = PREFIX) -> Findings:
    talk = speech.spoken(seconds)
    signal = chirps(seconds)
    scores = score.encode(talk, fec=True), score.encode(signal.samples)
    lost = choose(scores[0], talk)
    rule = Rule(UP, frozenset({Kind.RTP}), nth=tuple(number + 1 for number in lost), drop=1.0)
    with deploy("xdp", prefix, faults=True) as place:
        assert place.lab is not None
        control = record(place.site, *scores)
        place.lab.hop.set_rules(rule)
        harmed = record(place.site, *scores)
        dropped = place.lab.hop.count(UP, "rtp", "dropped")
    expect(all(take.came for take in (*control, *harmed)), "nothing came back")
    expect(dropped == 2 * len(lost), f"{dropped} packets were lost, not {2 * len(lost)}")
    late_ms = repaired_after_ms(harmed[0], lost)
    added_ms = added_to_later_ms(harmed[1], signal, lost) - added_to_later_ms(
        control[1], signal, lost
    )
    lossless, heard = (run[0].heard().samples for run in (control, harmed))
    return Findings(
        {
            "lost_packet_repaired_after": max(late_ms),
            "lost_packet_added_to_later": added_ms,
        },
        {
            "lost": lost,
            "repaired_after_ms": late_ms,
            "error_against_silence": repair.error(lossless, heard, lost, repair.ECHOED),
        },
    )


def choose(notes: score.Score, talk: speech.Samples) -> list[int]:
    """Packets in the midst of speech whose follower carries a copy, `EVERY` from each other and
    from both ends."""
    chosen: list[int] = []
    for number in range(EVERY, len(notes) - EVERY):
        loud = np.sqrt(np.mean(talk[number * FRAME : (number + 1) * FRAME] ** 2)) > 0.05
        far = not chosen or number - chosen[-1] >= EVERY
        if loud and far and score.carries_fec(notes[number + 1].payload):
            chosen.append(number)
    expect(chosen, "no packet in the midst of speech")
    return chosen


def repaired_after_ms(take: Take, lost: list[int]) -> list[float]:
    """Of each lost packet: when its 20 ms were back, after the time at which they were due."""
    delays = take.packet_delays()
    missing = [number for number in lost if np.isnan(delays[number])]
    expect(not missing, f"packets {missing} were never repaired")
    base = np.nanmedian(delays)
    late = (delays[lost] - base) * 1e3
    return [round(float(each), 2) for each in late]


def added_to_later_ms(take: Take, signal: Chirps, lost: list[int]) -> float:
    """Delay of the sweeps behind the first loss minus that of those before it.

    The tenth percentile of each: repairs and a busy machine delay some, what is added delays all.
    """
    at_s = lost[0] * FRAME / speech.RATE
    moments = take.delays(signal)
    before = [each.delay_s for each in moments if each.at_s < at_s - APART_S]
    behind = [each.delay_s for each in moments if each.at_s > at_s + APART_S]
    expect(before and behind, "no sweeps to compare")
    return float(np.percentile(behind, 10) - np.percentile(before, 10)) * 1e3
