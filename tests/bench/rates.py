"""Lossless rate, CPU time per packet and delay of a subject, and pairs of subjects in turn."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import search
from tests.bench.generator import burst_for
from tests.bench.histogram import percentile
from tests.bench.search import LOSSLESS, Offer
from tests.bench.trial import Stage, Trial
from tests.figures.measurement import expect

FLOOD_S = 0.06  # a slice; the best of several counts
SLICES = 5
TRIAL_S = 0.3  # of a paced trial
PROBES = 16  # one frame in so many carries the time
LATENCY_S = 0.5
LOADS = {10: 1, 50: 3, 90: 15}
"""Percent of the lossless rate, and how many frames go together: as evenly spaced as the generator
can. Odd numbers, so that probes are at every place of a burst."""
PERCENTILES = (50.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class Rate:
    """How many frames a second a subject carries without loss."""

    lossless: float
    flooded: bool  # it carried all that came, as fast as the generator was


def lossless_rate(stage: Stage, flows: int) -> Rate:
    """The subject is on. Where the generator waits for the relay, as in one kernel path, a flood
    loses nothing and its rate is the answer; else the rate is searched for."""
    guess = stage.flood(4096, flows)
    floods = [stage.flood(_frames(guess, FLOOD_S), flows) for _ in range(SLICES)]
    clean = [trial.rate for trial in floods if trial.loss <= LOSSLESS]
    if clean:
        return Rate(max(clean), True)
    through = max(trial.seen / trial.seconds for trial in floods if trial.seconds)

    def offer(rate: float) -> Offer:
        trial = stage.trial(TRIAL_S, rate, flows)
        return Offer(trial.rate, trial.late)

    return Rate(search.highest_lossless(offer, min(through, guess.rate)), False)


def _frames(guess: Trial, seconds: float) -> int:
    return max(4096, round(guess.rate * seconds))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rates of two subjects, measured in turn."""

    subject: list[float]
    reference: list[float]

    @property
    def best(self) -> float:
        return max(self.subject)

    @property
    def ratio(self) -> float:
        """Median of the ratios of the pairs."""
        return statistics.median(a / b for a, b in zip(self.subject, self.reference, strict=True))


def in_turn(subject: Stage, reference: Stage, flows: int, count: int) -> Pairs:
    """Neither is on."""
    pairs = Pairs([], [])
    for _ in range(count):
        for stage, rates in ((reference, pairs.reference), (subject, pairs.subject)):
            with stage.on(flows):
                rate = lossless_rate(stage, flows).lossless
            expect(rate, f"{stage.subject.name} lost frames at every rate")
            rates.append(rate)
    return pairs


def cpu_ns(stage: Stage, flows: int, rate: Rate, direct: float) -> float:
    """CPU time per packet, in ns, without generator and counter.

    In the kernel: what a flooded frame takes on the generator's CPU, less `direct`, what it takes
    with no relay in between; a user-space relay gets a flood that its socket buffer holds. In its
    processes: their run time in a trial at 90 % of the lossless rate. The subject is on.
    """
    pids = stage.subject.pids()
    size = 512 if pids else max(4096, round(rate.lossless * FLOOD_S))
    floods = [stage.flood(size, flows) for _ in range(SLICES * 3)]
    kernel = min(1e9 / trial.rate for trial in floods if trial.rate) - direct
    if not pids:
        return kernel
    before = run_time_ns(pids)
    trial = stage.trial(TRIAL_S * 2, rate.lossless * 0.9, flows)
    return kernel + (run_time_ns(pids) - before) / max(trial.seen, 1)


def run_time_ns(pids: Sequence[int]) -> int:
    """Time on a CPU so far of all threads of these processes."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total


@dataclass(frozen=True, slots=True)
class Latency:
    """Delay from generator to counter at one load."""

    load: int  # percent of the lossless rate asked for
    rate: float  # frames a second that were offered
    loss: float
    ns: dict[str, float]  # by percentile: "p50", "p99", "p99.9"
    histogram: list[int]


def latency(stage: Stage, flows: int, rate: float, load: int) -> Latency:
    """The subject is on. Raises `ValueError` if no probe arrives."""
    before = stage.delays()
    offered = rate * load / 100
    burst = min(LOADS[load], burst_for(offered) | 1)
    trial = stage.trial(LATENCY_S, offered, flows, probes=PROBES, burst=burst)
    counts = [b - a for a, b in zip(before, stage.delays(), strict=True)]
    found = {f"p{each:g}": percentile(counts, each) for each in PERCENTILES}
    return Latency(load, trial.rate, trial.loss, found, counts)
