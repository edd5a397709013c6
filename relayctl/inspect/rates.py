"""How fast counters grow between two looks. Pure."""

from collections.abc import Iterable, Sequence

from relayctl.inspect.records import Record


def with_rates(before: Iterable[Record], after: Sequence[Record], seconds: float) -> list[Record]:
    """`after` with `per_s` for each reason. A counter that fell began anew at 0."""
    last = {record["reason"]: record["count"] for record in before}
    return [
        record | {"per_s": _growth(last.get(record["reason"], 0), record["count"]) / seconds}
        for record in after
    ]


def _growth(before: int, after: int) -> int:
    return after - before if after >= before else after


def per_s(records: Iterable[Record], *reasons: str) -> float:
    """Sum of the rates of reasons whose name begins so."""
    return sum(float(record["per_s"]) for record in records if record["reason"].startswith(reasons))
