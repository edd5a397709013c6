"""What a relay has counted, as one value: to be subtracted from a later one."""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relayctl.reason import Reason
from tests.lab import http
from tests.lab.services import Services

PROGRAM = tuple(reason for reason in Reason if reason < 64 and reason is not Reason.PASS_NOT_OURS)
SLOW = tuple(reason for reason in Reason if reason >= 64)

_TELLS_S = 0.6  # the packet process tells its numbers twice a second
_SETTLES_S = 5.0


@dataclass(frozen=True)
class RelayCounts:
    reasons: Mapping[Reason, int]
    received: int  # datagrams that the packet process read
    socket_drops: int

    @classmethod
    def read(cls, services: Services) -> "RelayCounts":
        """Everything from one answer: between two the counts of a call go on."""
        url = f"{services.site.admin_url}/metrics"
        metrics = http.request(services.site.relay, url).text
        packets = 'ferryline_relay_packets_total{reason="%s"}'
        return cls(
            {reason: _value(metrics, packets % reason.label) for reason in Reason},
            _value(metrics, "ferryline_relay_socket_received_total"),
            _value(metrics, "ferryline_relay_socket_drops_total"),
        )

    def since(self, before: "RelayCounts") -> "RelayCounts":
        return RelayCounts(
            {reason: count - before.reasons[reason] for reason, count in self.reasons.items()},
            self.received - before.received,
            self.socket_drops - before.socket_drops,
        )

    def total(self, chosen: Iterable[Reason]) -> int:
        return sum(self.reasons[reason] for reason in chosen)

    def nonzero(self) -> dict[str, int]:
        """What there is to see, but for packets that are no business of ours (ARP, TCP)."""
        ours = (*PROGRAM, *SLOW)
        return {reason.label: self.reasons[reason] for reason in ours if self.reasons[reason]}


def settled(services: Services) -> RelayCounts:
    """The counts once the packet process has told all of its own."""
    deadline = time.monotonic() + _SETTLES_S
    found = RelayCounts.read(services)
    while time.monotonic() < deadline:
        time.sleep(_TELLS_S)
        before, found = found, RelayCounts.read(services)
        if (found.total(SLOW), found.received) == (before.total(SLOW), before.received):
            break
    return found


def _value(metrics: str, name: str) -> int:
    match = re.search(rf"^{re.escape(name)} (\S+)$", metrics, re.MULTILINE)
    assert match, f"no {name}"
    return int(float(match[1]))
