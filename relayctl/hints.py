"""SSRC hints: which flow did this RTP source belong to, before its client's address changed?

Pure. A hint only says where to send an orphan packet; nothing is installed, since anyone can write
an SSRC into a packet.
"""

from collections.abc import Iterable, Mapping

from relayctl.flow import FlowKey

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
