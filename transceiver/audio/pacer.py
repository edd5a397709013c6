"""The clock of everything that is sent at a time of its own: one timer for all calls of a process.

A slot is 20 ms long. Calls are spread over it by phase, so that their work does not come in one
lump, and a slot's deadline is `first + 20 ms * n` whatever was late before. Who is late by a whole
slot or more does not catch up: the slots in between are skipped. A fault in a call ends that call.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from transceiver.lateness import Lateness

SLOT_S = 0.02
PHASES = 10
STEP_S = SLOT_S / PHASES
EARLY_S = 0.001  # loops wake in whole milliseconds

log = logging.getLogger(__name__)


class Paced(Protocol):
    """A call, as the pacer sees it."""

    def slot(self, n: int, now: float) -> None:
        """Send what slot `n` of the process has."""

    def crash(self) -> None:
        """End after a fault of ours."""


class Pacer:
    """`clock` gives the seconds that all calls count in; `lateness` is told of each slot."""

    def __init__(self, clock: Callable[[], float], lateness: Lateness) -> None:
        self._clock = clock
        self._epoch = clock()
        self._step = 0  # the next one with work: slot * PHASES + phase
        self._phases: list[dict[Paced, None]] = [{} for _ in range(PHASES)]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lateness = lateness
        self.skipped = 0  # slots of calls

    def __len__(self) -> int:
        """Calls that are paced."""
        return sum(map(len, self._phases))

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._turn()

    def stop(self) -> None:
        self._loop = None
        if self._timer is not None:
            self._timer.cancel()

    def join(self, call: Paced, phase: int | None = None) -> int:
        """Give `call` its slots, the first within two; returns its phase, to come back to it."""
        if phase is None:
            phase = min(range(PHASES), key=lambda n: len(self._phases[n]))
        self._phases[phase][call] = None
        return phase

    def leave(self, call: Paced) -> None:
        for phase in self._phases:
            phase.pop(call, None)

    def quantile(self, share: float) -> float:
        """Seconds by which `share` of all work was late at most in the last 5 s; the slot that is
        overdue now counts too."""
        now = self._clock()
        return max(self._lateness.quantile(share, now), now - self._deadline(self._step))

    def tick(self, now: float) -> float:
        """Do what is due; returns when to come again."""
        self._skip(now)
        while (due := self._deadline(self._step)) <= now + EARLY_S:
            self._run(*divmod(self._step, PHASES), due)
            self._go_on(1)
        return due

    def _run(self, n: int, phase: int, due: float) -> None:
        now = self._clock()
        calls = self._phases[phase]
        if not calls:
            self._lateness.add(now - due, now)
        for call in tuple(calls):
            if call not in calls:
                continue
            try:
                call.slot(n, now)
            except Exception:
                self._fault(call)
            now = self._clock()
            self._lateness.add(now - due, now)

    def _skip(self, now: float) -> None:
        """Leave out what is late by a slot or more."""
        late = now - self._deadline(self._step)
        steps = int((late + EARLY_S) / STEP_S) + 1 - PHASES
        if steps <= 0:
            return
        rounds, rest = divmod(steps, PHASES)
        calls = rounds * len(self)
        calls += sum(len(self._phases[(self._step + n) % PHASES]) for n in range(rest))
        self._go_on(steps)
        self.skipped += calls
        self._lateness.add(late, now, calls or 1)

    def _fault(self, call: Paced) -> None:
        """A fault of ours ends the call that it happened in, and no other."""
        log.exception("fault in a paced call")
        self.leave(call)
        call.crash()

    def _deadline(self, step: int) -> float:
        return self._epoch + step * STEP_S

    def _go_on(self, steps: int) -> None:
        """To the step after `steps` of them, or the next one that has calls or begins a slot: that
        one measures the loop when there are none."""
        self._step += steps
        while self._step % PHASES and not self._phases[self._step % PHASES]:
            self._step += 1

    def _turn(self) -> None:
        due = self.tick(self._clock())
        if self._loop is not None:
            self._timer = self._loop.call_later(max(0.0, due - self._clock()), self._turn)
