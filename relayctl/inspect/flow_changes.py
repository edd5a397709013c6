"""What changed between two looks at a flow table.

Pure: two tables of flow records in, the differences out. Packet counters are no change.
"""

import enum
from collections.abc import Iterator, Mapping

from relayctl.inspect.records import Record

Table = Mapping[tuple[str, int], Record]
"""Flow records by client and VIP id."""


class Change(enum.StrEnum):
    KNOWN = "known"  # it was there at the first look
    NEW = "new"
    CONFIRMED = "confirmed"
    MOVED = "moved"  # to another endpoint
    PATH = "path"  # from user space to the kernel, or back
    GONE = "gone"


def changes(before: Table | None, after: Table) -> Iterator[tuple[Change, Record]]:
    """Each change with the flow as it is now, or as it was last seen. `before` is None at the first
    look."""
    if before is None:
        yield from ((Change.KNOWN, flow) for flow in after.values())
        return
    for key, flow in after.items():
        last = before.get(key)
        if last is None:
            yield Change.NEW, flow
            continue
        if last["endpoint"] != flow["endpoint"]:
            yield Change.MOVED, flow
        if last["state"] != flow["state"] == "confirmed":
            yield Change.CONFIRMED, flow
        if last["path"] != flow["path"]:
            yield Change.PATH, flow
    for key, flow in before.items():
        if key not in after:
            yield Change.GONE, flow
