"""SSRC hints: which flow did this RTP source belong to, before its client's address changed?

Pure. A hint only says where to send an orphan packet; nothing is installed, since anyone can write
an SSRC into a packet.
"""

from collections.abc import Iterable, Mapping

from relayctl.flow import Flow, FlowKey, State

PER_SECOND = 16  # packets one SSRC may send by hint
CAPACITY = 65536  # hints; more calls than one relay's packet process can heal at once

_SECOND_NS = 1_000_000_000


class Hints:
    """SSRC → flow, with a budget for each SSRC."""

    def __init__(self) -> None:
        self._flows: dict[int, FlowKey] = {}
        self._spent: dict[int, int] = {}  # in the second `_second`; holds known SSRCs only
        self._second = -1

    def __len__(self) -> int:
        return len(self._flows)

    def find(self, ssrc: int) -> FlowKey | None:
        return self._flows.get(ssrc)

    def update(self, added: Mapping[int, FlowKey], removed: Iterable[int] = ()) -> None:
        for ssrc in removed:
            self._flows.pop(ssrc, None)
        for ssrc, key in added.items():
            if len(self._flows) < CAPACITY or ssrc in self._flows:
                self._flows[ssrc] = key

    def take(self, ssrc: int, now: int) -> bool:
        """Spend one packet of the SSRC's budget at `now` (ns). False when it is used up."""
        second = now // _SECOND_NS
        if second != self._second:
            self._second = second
            self._spent.clear()
        spent = self._spent.get(ssrc, 0)
        if spent >= PER_SECOND:
            return False
        self._spent[ssrc] = spent + 1
        return True


class HintIndex:
    """Collects hints from a sweep: confirmed flows with an SSRC, the newest one wins."""

    def __init__(self) -> None:
        self._best: dict[int, tuple[int, FlowKey]] = {}

    def see(self, key: FlowKey, flow: Flow) -> None:
        if not flow.ssrc or flow.state is not State.CONFIRMED:
            return
        known = self._best.get(flow.ssrc)
        if known is None or flow.born >= known[0]:
            self._best[flow.ssrc] = flow.born, key

    def result(self) -> dict[int, FlowKey]:
        return {ssrc: key for ssrc, (_, key) in self._best.items()}


def difference(
    old: Mapping[int, FlowKey], new: Mapping[int, FlowKey]
) -> tuple[dict[int, FlowKey], list[int]]:
    """What to add and what to remove to get from `old` to `new`."""
    added = {ssrc: key for ssrc, key in new.items() if old.get(ssrc) != key}
    return added, [ssrc for ssrc in old if ssrc not in new]
