"""What the fault hop does to a frame: a seeded schedule of loss, delay, jitter, duplicates,
reordering and rate.

Pure: a frame's description and `now` in, the times at which it goes on out. The decision for the
n-th frame that a rule matches in one direction depends on seed, rule and n only, not on what else
is on the wire; so two runs of one seed treat a call alike.
"""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from relayctl.wire.address import Address
from tests.lab.frame import MEDIA, Kind

UP, DOWN = "up", "down"  # from and to the client


@dataclass(frozen=True, slots=True)
class Frame:
    direction: str  # UP or DOWN
    kind: Kind
    client: Address
    size: int  # bytes on the wire


@dataclass(frozen=True, slots=True)
class Rule:
    """Probabilities are 0-1. All rules that match a frame act on it, in their order."""

    direction: str | None = None  # None: both
    kinds: frozenset[Kind] = MEDIA  # signaling over TCP is spared unless named
    nth: tuple[int, ...] = ()  # only these, counted from 1 per client, direction and kind
    drop: float = 0.0
    duplicate: float = 0.0
    delay_s: float = 0.0
    jitter_s: float = 0.0  # uniform, to both sides of the delay
    in_order: bool = True  # else frames overtake each other as their jitter has it
    reorder: float = 0.0  # share of frames held back, so that later ones overtake
    reorder_s: float = 0.03  # for how long
    rate_bps: float | None = None  # bits per second
    queue_s: float = 0.2  # frames that would wait longer for the rate are dropped

    def matches(self, frame: Frame, number: int) -> bool:
        return (
            self.direction in (None, frame.direction)
            and frame.kind in self.kinds
            and (not self.nth or number in self.nth)
        )


class Impairment:
    """Rules at work. New rules start new counts."""

    def __init__(self, rules: Iterable[Rule] = (), seed: int = 1) -> None:
        self._rules = tuple(rules)
        self._lanes = {
            (index, direction): _Lane(rule, random.Random(f"{seed}/{index}/{direction}"))
            for index, rule in enumerate(self._rules)
            for direction in (UP, DOWN)
        }
        self._numbers: Counter[tuple[str, Kind, Address]] = Counter()

    def decide(self, frame: Frame, now: float) -> list[float]:
        """When `frame` goes on: once as a rule, twice for a duplicate, empty for a loss."""
        key = frame.direction, frame.kind, frame.client
        self._numbers[key] += 1
        due = [now]
        for index, rule in enumerate(self._rules):
            if rule.matches(frame, self._numbers[key]):
                lane = self._lanes[index, frame.direction]
                due = [later for at in due for later in lane.decide(at, frame.size)]
        return due


class _Lane:
    """One rule in one direction."""

    def __init__(self, rule: Rule, source: random.Random) -> None:
        self._rule = rule
        self._source = source
        self._free_at = 0.0  # when the line has sent everything before
        self._last = 0.0  # when the latest frame in order goes on

    def decide(self, at: float, size: int) -> list[float]:
        rule = self._rule
        # Always four draws: one decision must not shift the next frame's.
        lost, jitter, held, doubled = (self._source.random() for _ in range(4))
        if lost < rule.drop:
            return []
        if rule.rate_bps is not None:
            start = max(at, self._free_at)
            if start - at > rule.queue_s:
                return []
            at = self._free_at = start + size * 8 / rule.rate_bps
        at += max(0.0, rule.delay_s + rule.jitter_s * (2 * jitter - 1))
        if held < rule.reorder:
            return [at + rule.reorder_s]
        if rule.in_order:
            self._last = at = max(at, self._last)
        return [at, at] if doubled < rule.duplicate else [at]
