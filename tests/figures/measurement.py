"""What a measurement is: the targets that it answers for, and how it is made."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.report import Target, Value

PREFIX = "fig-"  # of the namespaces; measurements are made one after another


class MeasurementError(RuntimeError):
    """It did not happen what was to be measured; no figure stands."""


@dataclass(frozen=True)
class Findings:
    """`values` by names of targets; `detail` goes into the report beside them."""

    values: dict[str, Value]
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Measurement:
    name: str
    targets: tuple[Target, ...]
    measure: Callable[[], Findings]


def expect(happened: object, what: str) -> None:
    """Raises `MeasurementError` with `what` unless it happened."""
    if not happened:
        raise MeasurementError(what)
