"""What the rig asks of a subject, and what a subject is asked to carry."""

from dataclasses import dataclass
from typing import Protocol

from tests.bench.sink import Watch
from tests.bench.wire import Frame


@dataclass(frozen=True)
class Leg:
    """One way through the relay: what goes in where, and what comes out where."""

    frame: Frame
    enters: str  # the far interface that sends it
    leaves: str  # the far interface at which it arrives
    watch: Watch
    grows: int = 0  # bytes by which the relay makes it longer


class Subject(Protocol):
    """A relay on the rig. `start` may take seconds; the others do not."""

    name: str
    legs: tuple[Leg, ...]

    def pids(self) -> list[int]:
        """Processes that carry frames; none for what is all in the kernel."""
        ...

    def start(self) -> None:
        """Compile, load, start processes; carry nothing yet."""
        ...

    def carry(self, flows: int) -> None:
        """From now on frames of `flows` clients go through this subject."""
        ...

    def keep_alive(self, flows: int) -> None:
        """Before every trial: heartbeats, flows that would die of silence."""
        ...

    def rest(self) -> None:
        """Off the interfaces, so that another subject can have them."""
        ...

    def stop(self) -> None: ...


class NotRun(RuntimeError):
    """A subject cannot be had on this machine; the text says why."""
