"""Who carried the packets of a call: kernel or user space, by the relay's own counters.

Pure. The relay serves nobody else while a call is counted, so the difference of two looks at its
counters is the call's. The flow's own counters and the two ends of the call are the cross-check.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from relayctl.reason import PUNTS, Reason

Reasons = Mapping[str, int]  # count by label
Record = Mapping[str, Any]

UP_USER = (Reason.SLOW_INSTALLED, Reason.SLOW_FORWARD, Reason.SLOW_HINT)
DOWN_USER = (Reason.SLOW_RETURN, Reason.SLOW_RECOVERED)
EXPECTED = {Reason.FORWARD, Reason.RETURN, *UP_USER, *DOWN_USER, *PUNTS}
EXPECTED |= {Reason.PASS_NOT_OURS, Reason.PUNT_ODD}


@dataclass(frozen=True, slots=True)
class Carried:
    """Packets of one direction, by who sent them on."""

    kernel: int
    user: int

    @property
    def total(self) -> int:
        return self.kernel + self.user


@dataclass(frozen=True, slots=True)
class Ledger:
    """What happened between two looks at the counters."""

    up: Carried
    down: Carried
    punts: dict[str, int]  # handed to user space, by reason
    drops: dict[str, int]  # by either, by reason

    def kernel_share(self, carried: Carried) -> float:
        """Per cent of one direction that user space did not touch; 0 when nothing was carried.

        Every punt counts against it, whichever direction it was of and whatever became of it: the
        program counts punts at once, the packet process tells its own counts some time later.
        """
        touched = carried.kernel + sum(self.punts.values())
        return 100 * carried.kernel / touched if touched else 0.0

    def packets(self) -> dict[str, dict[str, int]]:
        return {"up": asdict(self.up), "down": asdict(self.down)}


@dataclass(frozen=True)
class Counted:
    """One call as the relay counted it."""

    flow: dict[str, Any]
    whole: Ledger  # from before the call
    since_confirmed: Ledger | None  # None: nobody saw the flow confirmed


def reasons(records: Iterable[Record]) -> dict[str, int]:
    """Counters as `relayctl stats -o json` prints them."""
    return {record["reason"]: record["count"] for record in records}


def between(before: Reasons, after: Reasons, *, xdp: bool) -> Ledger:
    """The counters `after` minus those `before`. Without XDP the packet process carries what the
    program would have, and counts it under the same reasons."""
    passed = {each: after.get(each.label, 0) - before.get(each.label, 0) for each in Reason}

    def carried(hits: int, slow: Iterable[Reason]) -> Carried:
        user = sum(passed[each] for each in slow)
        return Carried(hits, user) if xdp else Carried(0, hits + user)

    return Ledger(
        up=carried(passed[Reason.FORWARD], UP_USER),
        down=carried(passed[Reason.RETURN], DOWN_USER),
        punts={each.label: passed[each] for each in Reason if each in PUNTS and passed[each]},
        drops={each.label: n for each, n in passed.items() if n and each not in EXPECTED},
    )


def disagreements(ledger: Ledger, flow: Record, sent: int, received: int) -> list[str]:
    """What the relay counted for a whole call against its flow and against RTP at the client.

    A client sends checks and DTLS besides its `sent` RTP packets, so the relay has to have carried
    at least that many. The flow counts what the kernel carried, and some of what user space did:
    the packet that opened it, and those that waited for a nexthop. Empty when all agree.
    """
    found = []
    for name, carried, ends in (("up", ledger.up, sent), ("down", ledger.down, received)):
        of_flow = flow["packets"][name]
        if carried.total < ends:
            found.append(f"{name}: the relay carried {carried.total} packets, the client {ends}")
        if not carried.kernel <= of_flow <= carried.total:
            found.append(
                f"{name}: the flow counts {of_flow} packets, "
                f"the reasons {carried.kernel} in the kernel and {carried.user} in user space"
            )
    return found
