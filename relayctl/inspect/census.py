"""How many flows there are, by family, state and cluster. Pure.

A table of a million flows is counted as it stands in the maps: no flow is unpacked for it.
"""

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from relayctl.flow import CONFIRMED, KEY_V6, VALUE
from relayctl.inspect.records import Record

_CLUSTER = 14  # offsets in a packed flow; `flow.VALUE` has the layout
_FLAGS = 23

FAMILIES = ("v4", "v6")
STATES = ("new", "confirmed")


@dataclass
class Census:
    """Flows by (family, state), and by cluster id."""

    flows: Counter[tuple[str, str]] = field(default_factory=Counter)
    clusters: Counter[int] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.flows.total()

    def of_state(self, state: str) -> int:
        return sum(self.flows[family, state] for family in FAMILIES)


def of_batches(batches: Iterable[tuple[bytes, bytes]]) -> Census:
    """Joined keys and joined values of each batch; keys of one batch have one size."""
    census = Census()
    for keys, values in batches:
        count = len(values) // VALUE.size
        family = FAMILIES[len(keys) == count * KEY_V6.size]
        low, high = (values[_CLUSTER + at :: VALUE.size] for at in (0, 1))
        if sys.byteorder == "big":
            low, high = high, low
        confirmed = sum(flags & CONFIRMED != 0 for flags in values[_FLAGS :: VALUE.size])
        census.flows[family, "confirmed"] += confirmed
        census.flows[family, "new"] += count - confirmed
        for (one, other), found in Counter(zip(low, high, strict=True)).items():
            census.clusters[one | other << 8] += found
    return census


def of_records(records: Iterable[Record]) -> Census:
    """The same from flow records."""
    census = Census()
    for record in records:
        census.flows[FAMILIES[record["client"].startswith("[")], record["state"]] += 1
        census.clusters[record["cluster"]] += 1
    return census
