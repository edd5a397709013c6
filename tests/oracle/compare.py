"""Play a scene through the program and the model, frame by frame, and say where they differ."""

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum

from relayctl.reason import Reason
from tests.oracle.kernel import Kernel, Seen, now
from tests.oracle.model import Model, Outcome
from tests.oracle.node import Node
from tests.oracle.scene import Scene

PROGRAM_REASONS = [reason for reason in Reason if reason < 64]


class Verdict(IntEnum):
    """Numbers of enum xdp_action."""

    DROP = 1
    PASS = 2
    REDIRECT = 4


class TornError(Exception):
    """The clock went on to its next unit in the middle of the scene: play it again."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Where the two part: at this frame of the scene, or behind the last one."""

    scene: Scene
    at: int
    model: str
    program: str

    @property
    def kind(self) -> tuple[str, str]:
        """What stays the same while a scene is made smaller."""
        return self.model.partition(" ")[0], self.program.partition(" ")[0]

    def __str__(self) -> str:
        return f"frame {self.at}\n  model   {self.model}\n  program {self.program}"


def verdict_of(reason: Reason) -> Verdict:
    if reason in (Reason.FORWARD, Reason.RETURN):
        return Verdict.REDIRECT
    return Verdict.DROP if reason.name.startswith("DROP_") else Verdict.PASS


class Duel:
    """Both views of one node. Counts the frames compared, by reason."""

    def __init__(self, relay: Node, program: Kernel) -> None:
        self._relay = relay
        self.program = program
        self._counts = self._counted()
        self.reached: Counter[Reason] = Counter()

    def play(self, scene: Scene) -> Disagreement | None:
        """The first difference, or None; repeated until no change of the clock tears the scene."""
        while True:
            try:
                return self._play(scene)
            except TornError:
                self._counts = self._counted()

    def _play(self, scene: Scene) -> Disagreement | None:
        stamp = now()
        model = Model(self._relay, scene, stamp)
        self.program.set(scene, stamp)
        reached: Counter[Reason] = Counter()
        try:
            difference = (
                self._compare_frames(scene, model, stamp, reached)
                or self._compare_flows(scene, model)
                or self._compare_counts(scene)
            )
        finally:
            self.program.forget(model.budgets.touched())
        if difference:
            self._counts = self._counted()
        self.reached += reached
        return difference

    def _compare_frames(
        self, scene: Scene, model: Model, stamp: int, reached: Counter[Reason]
    ) -> Disagreement | None:
        for at, sent in enumerate(scene.frames):
            outcome = model.judge(sent, stamp)
            seen = self.program.run(sent)
            agrees = self._agree(outcome, seen)
            if now() != stamp:
                raise TornError
            if not agrees:
                return Disagreement(scene, at, _tell(outcome), self._tell(seen))
            reached[outcome.reason] += 1
        return None

    def _agree(self, outcome: Outcome, seen: Seen) -> bool:
        self._counts[outcome.reason] += 1
        return (
            seen.verdict == verdict_of(outcome.reason)
            and (outcome.frame is None or outcome.frame == seen.frame)
            and self.program.counted(outcome.reason) == self._counts[outcome.reason]
        )

    def _compare_flows(self, scene: Scene, model: Model) -> Disagreement | None:
        for key, _ in scene.flows:
            wanted, found = model.flow(key), self.program.flow(key)
            if wanted != found:
                return Disagreement(scene, len(scene.frames), f"flow {wanted}", f"flow {found}")
        return None

    def _compare_counts(self, scene: Scene) -> Disagreement | None:
        """Every frame counts one reason and no other."""
        if self._counted() == self._counts:
            return None
        return Disagreement(scene, len(scene.frames), "counts one", f"counts {self._grown()}")

    def _counted(self) -> dict[Reason, int]:
        return {reason: self.program.counted(reason) for reason in PROGRAM_REASONS}

    def _grown(self) -> str:
        found = self._counted()
        return "+".join(r.name for r in PROGRAM_REASONS if found[r] > self._counts[r]) or "nothing"

    def _tell(self, seen: Seen) -> str:
        """The model's reason is among the counts already: if it is right, nothing grew."""
        reason = self._grown().replace("nothing", "the-same")
        return f"{reason} {seen.verdict} {seen.frame.hex()}"


def _tell(outcome: Outcome) -> str:
    frame = outcome.frame.hex() if outcome.frame is not None else ""
    return f"{outcome.reason.name} {verdict_of(outcome.reason)} {frame}"
