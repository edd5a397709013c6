import asyncio
import random
import time
from itertools import pairwise

import pytest
import uvloop

from tests.unit.transceiver.live import until
from transceiver.audio.pacer import PHASES, SLOT_S, STEP_S, Pacer
from transceiver.lateness import Lateness


class Call:
    """Takes slots; `work` seconds of the clock each."""

    def __init__(self, clock: "Clock", work: float = 0.0) -> None:
        self.clock = clock
        self.work = work
        self.slots: list[tuple[int, float]] = []
        self.crashes = 0
        self.fault: Exception | None = None

    def slot(self, n: int, now: float) -> None:
        if self.fault is not None:
            raise self.fault
        self.slots.append((n, now))
        self.clock.now += self.work

    def crash(self) -> None:
        self.crashes += 1


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Rig:
    def __init__(self, calls: int = 0, work: float = 0.0) -> None:
        self.clock = Clock()
        self.pacer = Pacer(self.clock, Lateness())
        self.calls = [Call(self.clock, work) for _ in range(calls)]
        for call in self.calls:
            self.pacer.join(call)

    def run(self, seconds: float) -> None:
        """Come when the pacer wants to, or later if work took longer."""
        end = self.clock.now + seconds
        due = self.pacer.tick(self.clock.now)
        while due < end:
            self.clock.now = max(self.clock.now, due)
            due = self.pacer.tick(self.clock.now)
        self.clock.now = max(self.clock.now, end)


def test_each_call_has_every_slot_at_its_time() -> None:
    rig = Rig(25)
    rig.run(1.0)
    for call in rig.calls:
        numbers = [n for n, _ in call.slots]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert len(numbers) in (50, 51)
        first = call.slots[0][1]
        for n, at in call.slots:
            assert at == pytest.approx(first + (n - numbers[0]) * SLOT_S)


def test_calls_are_spread_over_the_slot() -> None:
    rig = Rig(3 * PHASES)
    rig.run(0.5)
    starts = sorted(
        round((call.slots[5][1] - 1000) % SLOT_S / STEP_S) % PHASES for call in rig.calls
    )
    assert starts == sorted(list(range(PHASES)) * 3)
    assert len(rig.pacer) == 3 * PHASES


def test_what_is_late_by_a_slot_is_skipped_and_never_made_up() -> None:
    rig = Rig(20)
    rig.run(0.2)
    before = [len(call.slots) for call in rig.calls]
    rig.clock.now += 0.205  # somebody held the loop up
    rig.pacer.tick(rig.clock.now)
    for call, count in zip(rig.calls, before, strict=True):
        assert len(call.slots) == count + 1
    rig.run(0.5)
    assert rig.pacer.skipped == pytest.approx(20 * 9, abs=20)
    for call in rig.calls:
        times = [at for _, at in call.slots]
        assert min(b - a for a, b in pairwise(times)) >= -1e-9
        assert all(at - 1000 >= n * SLOT_S - 1e-6 for n, at in call.slots)


def test_time_does_not_creep_when_each_slot_is_a_little_late() -> None:
    rig = Rig(1)
    dice = random.Random(1)
    for _ in range(5000):
        rig.clock.now = max(rig.clock.now, rig.pacer.tick(rig.clock.now)) + dice.uniform(0, 0.015)
    n, at = rig.calls[0].slots[-1]
    assert 0 <= at - 1000 - n * SLOT_S < 0.02
    assert rig.pacer.skipped == 0


def test_overload_leaves_slots_out_and_returns_to_the_loop() -> None:
    rig = Rig(50, work=0.001)  # 50 ms of work each 20 ms
    began = rig.clock.now
    rig.pacer.tick(rig.clock.now)
    rig.clock.now += 0.1
    rig.pacer.tick(rig.clock.now)
    assert sum(len(call.slots) for call in rig.calls) <= 110
    rig.run(2.0)
    taken = sum(len(call.slots) for call in rig.calls)
    assert taken == pytest.approx((rig.clock.now - began) / 0.001, rel=0.2)
    assert rig.pacer.skipped > taken / 2
    assert rig.pacer.quantile(0.99) > 0.02


def test_lateness_is_that_of_the_sending() -> None:
    rig = Rig(20, work=0.0006)  # two to a phase
    rig.run(5.0)
    assert rig.pacer.quantile(0.5) == pytest.approx(0.001)
    assert rig.pacer.quantile(0.99) == pytest.approx(0.002)


def test_without_calls_it_measures_the_loop() -> None:
    rig = Rig()
    rig.run(1.0)
    assert rig.pacer.quantile(0.99) <= 0.001
    for _ in range(20):
        rig.clock.now = rig.pacer.tick(rig.clock.now) + 0.01
        rig.pacer.tick(rig.clock.now)
    assert rig.pacer.quantile(0.99) >= 0.01
    for _ in range(20):
        rig.clock.now += 0.05
        rig.pacer.tick(rig.clock.now)
    assert rig.pacer.quantile(0.99) > 0.03


def test_it_wakes_when_somebody_has_a_slot_and_once_a_slot_else() -> None:
    rig = Rig()
    call = Call(rig.clock)
    rig.pacer.join(call, 4)
    wakes: list[float] = []
    for _ in range(40):
        wakes.append(rig.clock.now - 1000)
        rig.clock.now = rig.pacer.tick(rig.clock.now)
    phases = [round(at / STEP_S) % PHASES for at in wakes[-20:]]
    assert phases == [0, 4] * 10 or phases == [4, 0] * 10


def test_who_is_punctual_is_not_late_between_two_deadlines() -> None:
    rig = Rig()
    for _ in range(100):
        rig.clock.now = rig.pacer.tick(rig.clock.now) + 0.0015
        assert rig.pacer.quantile(1.0) <= 0.002


def test_what_is_overdue_now_counts() -> None:
    rig = Rig()
    rig.run(1.0)
    rig.clock.now += 0.5
    assert rig.pacer.quantile(0.99) > 0.4


def test_who_leaves_has_no_slots_and_comes_back_to_the_same_phase() -> None:
    rig = Rig(PHASES)
    call = Call(rig.clock)
    phase = rig.pacer.join(call)
    rig.run(0.1)
    rig.pacer.leave(call)
    rig.pacer.leave(call)
    count = len(call.slots)
    rig.run(3.0)
    assert len(call.slots) == count
    assert rig.pacer.join(call, phase) == phase
    rig.run(0.1)
    (n, at), (m, later) = call.slots[count - 1], call.slots[count]
    assert later - at == pytest.approx((m - n) * SLOT_S)
    assert rig.pacer.skipped == 0


def test_a_fault_ends_its_call_and_no_other() -> None:
    rig = Rig(2 * PHASES)
    rig.calls[0].fault = RuntimeError("made for this test")
    rig.run(0.1)
    assert rig.calls[0].crashes == 1
    assert not rig.calls[0].slots
    assert all(len(call.slots) >= 5 for call in rig.calls[1:])
    assert len(rig.pacer) == 2 * PHASES - 1


def test_a_call_may_leave_from_inside_its_slot_or_anothers() -> None:
    rig = Rig(2 * PHASES)
    first, second = rig.calls[0], rig.calls[PHASES]

    def leave(n: int, now: float) -> None:
        rig.pacer.leave(first)
        rig.pacer.leave(second)

    first.slot = leave  # type: ignore[method-assign]
    rig.run(0.1)
    assert len(rig.pacer) == 2 * PHASES - 2
    assert not second.slots


def test_on_the_loop_of_production() -> None:
    async def scenario() -> None:
        pacer = Pacer(time.monotonic, Lateness())
        clock = Clock()
        call = Call(clock)
        pacer.start(asyncio.get_running_loop())
        await asyncio.sleep(0.03)
        pacer.join(call)
        await until(lambda: len(call.slots) >= 5)
        pacer.stop()
        count = len(call.slots)
        await asyncio.sleep(0.06)
        assert len(call.slots) == count
        numbers = [n for n, _ in call.slots]
        assert numbers == sorted(set(numbers))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(scenario(), 20))
