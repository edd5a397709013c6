"""Opens plain new calls, as many as came in a row, step by step.

Each step is taken for all of them before the next one: mixed, they take twice as long, since every
system call drives the interpreter out of the processor's caches.
"""

import itertools
from collections import Counter

from relayctl.datapath.base import PackedFlows
from relayctl.flow import FlowKey
from relayctl.packet.actions import FromClient
from relayctl.packet.inbox import Datagram
from relayctl.packet.newcomers import Newcomers, Opening
from relayctl.packet.outlets import Outlets
from relayctl.packet.upkeep import Upkeep
from relayctl.packet.view import PacketView
from relayctl.reason import Reason

_OUTCOMES = {True: Reason.SLOW_INSTALLED, False: Reason.SLOW_SEND_FAILED}


class Rush:
    """First packets that wait to be carried out together."""

    def __init__(
        self, view: PacketView, flows: PackedFlows, outlets: Outlets, upkeep: Upkeep
    ) -> None:
        self._newcomers = Newcomers(view)
        self._flows = flows
        self._outlets = outlets
        self._upkeep = upkeep
        self._row: list[Opening] = []

    def take(self, datagram: Datagram, vip: int) -> bool:
        """False for what is no plain first packet."""
        opening = self._newcomers.judge(datagram.payload, datagram.sender, vip)
        if opening is None:
            return False
        self._row.append(opening)
        return True

    def open(self, counts: Counter[Reason], now: int) -> list[FromClient]:
        """Open what was taken. Clients that had a flow after all, or found no room, come back."""
        if not self._row:
            return []
        row, self._row = self._row, []
        install, send = self._flows.install_new, self._outlets.send_inner
        is_new = [install(each.key, each.flow) for each in row]
        opened = list(itertools.compress(row, is_new))
        self._upkeep.opened(opened)
        is_sent = [send(each.endpoint, each.sport, each.datagram) for each in opened]
        counts.update(_OUTCOMES[each] for each in is_sent)
        return [
            FromClient(each.payload, FlowKey.read(each.key), now)
            for each, done in zip(row, is_new, strict=True)
            if not done
        ]
