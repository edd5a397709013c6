"""The table of the suite: one row for each client, one column for each thing that has to work.

A cell is `works`, or `n/a: <why>` where a client has nothing to try. Which of the two stands in the
client's own file, so that no failure can turn into an `n/a`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.figures.measurement import Findings, Measurement
from tests.report import Target, Value

COLUMNS = ("connects", "audio", "events", "barge_in", "hang_up", "restart")
HEADINGS = (*("connects", "audio both ways", "events valid", "barge-in", "hang-up", "restart"),)
WORKS = "works"
_BRIEF = 120  # characters of what a client throws
NO_RESTART = "n/a: the client has no ICE restart"

Verdicts = Mapping[str, str | None]  # by column: what is wrong; None if nothing is


class CellTarget(Target):
    """One cell."""

    def __str__(self) -> str:
        return "works, or n/a with its reason"


@dataclass(frozen=True)
class Client:
    """`without`: columns that the client has nothing for, and why. `try_out` uses it, and judges
    every other column; the mapping beside the verdicts goes into the report."""

    name: str  # of its targets
    title: str  # for people, with the version
    try_out: Callable[[], tuple[Verdicts, Mapping[str, Any]]]
    without: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        odd = [why for why in self.without.values() if not why.startswith("n/a: ")]
        if odd or not self.without.keys() <= set(COLUMNS):
            raise ValueError(f"{self.name}: {odd or list(self.without)}")

    def measurement(self) -> Measurement:
        targets = tuple(
            CellTarget(f"{self.name}_{column}", "=", self.without.get(column, WORKS))
            for column in COLUMNS
        )
        return Measurement(self.name, targets, self._measure)

    def _measure(self) -> Findings:
        verdicts: Verdicts = {}
        detail: Mapping[str, Any] = {}
        if len(self.without) < len(COLUMNS):
            try:
                verdicts, detail = self.try_out()
            except Exception as error:  # of a client that may do anything
                verdicts = dict.fromkeys(COLUMNS, str(error).partition("; ")[0][:_BRIEF])
                detail = {"error": f"{type(error).__name__}: {error}"}
        values: dict[str, Value] = {}
        for column in COLUMNS:
            found = verdicts.get(column, "not tried")
            works = WORKS if found is None else f"fails: {found}"
            values[f"{self.name}_{column}"] = self.without.get(column, works)
        return Findings(values, dict(detail))


def rows(results: Mapping[str, Value], clients: list[Client]) -> list[tuple[str, ...]]:
    """For people: title, then the cells, by a report's results."""
    return [
        (
            client.title,
            *(str(results.get(f"{client.name}_{column}") or "not tried") for column in COLUMNS),
        )
        for client in clients
    ]
