"""Packets of one call in the order in which they were sent, at once or after a short wait.

Pure. A packet that continues the sequence goes through untouched. A gap in the sequence waits for
what is missing: 20 ms, more where packets come that late, 60 ms at most. What comes after that is
dropped and counted.
"""

import math
from typing import NamedTuple

from transceiver.rtp import CLOCK_RATE, Packet

WAIT_S = 0.020
MAX_WAIT_S = 0.060
HELD = 64  # packets behind a gap; one more and the gap is given up
RESYNC_AFTER = 5  # packets in a row of a foreign sequence

_MAX_AHEAD = 3000  # RFC 3550 appendix A.1: farther is another sequence, not loss
_MAX_BEHIND = 100
_MAX_BEHIND_TICKS = 10 * CLOCK_RATE
_RUN_STEP = 16  # sequence numbers from one packet of a foreign run to the next
_MARGIN = 1.25  # of the wait over the lateness seen
_RETURN = 1 / 16  # of the way back to WAIT_S, for each gap that nothing came for
_MASK = 0xFFFF


class Ordered(NamedTuple):
    packet: Packet
    missing: int = 0  # packets given up just before it
    fresh: bool = False  # the first of a new source: its numbers say nothing about the old


class Order:
    """Ask `timer` again at `deadline`, which each call may move."""

    def __init__(self) -> None:
        self.deadline = math.inf
        self.wait = WAIT_S
        self.late = 0
        self.duplicates = 0
        self.resyncs = 0
        self.overflows = 0  # gaps given up for want of room
        self.foreign = 0  # packets far off the sequence that did not go on
        self._ssrc = -1
        self._left = -1  # the source before this one
        self._first = 0  # sequence number of the source
        self._next = 0
        self._timestamp = 0  # of the newest packet given out
        self._held: dict[int, tuple[Packet, float]] = {}
        self._given_up: dict[int, float] = {}  # sequence: when its gap opened
        self._run: list[Packet] = []  # of a foreign sequence

    def add(self, packet: Packet, now: float) -> list[Ordered]:
        """Take a packet that arrived; what can be given out now."""
        if packet.ssrc != self._ssrc:
            if packet.ssrc == self._left:
                return self._strange(packet, now)
            return self._begin([packet], now)
        ahead = (packet.sequence - self._next) & _MASK
        if ahead > _MAX_AHEAD and not self._is_late(packet, ahead):
            return self._strange(packet, now)
        if self._run:
            self._forget_run()
        if ahead:
            return self._out_of_order(packet, ahead, now)
        if self._held:
            self._notice_lateness(packet, now)
        self._advance(packet)
        out = [Ordered(packet)]
        if self._held:
            self._drain(out)
        return out

    def timer(self, now: float) -> list[Ordered]:
        """Give up the gaps that are due."""
        out: list[Ordered] = []
        self._close_due(out, now)
        return out

    def _advance(self, packet: Packet) -> None:
        self._next = (packet.sequence + 1) & _MASK
        self._timestamp = packet.timestamp

    def _is_late(self, packet: Packet, ahead: int) -> bool:
        """Whether it is of this sequence's past: by its number and by its time."""
        behind = (self._timestamp - packet.timestamp) & 0xFFFFFFFF
        return ahead >= 0x10000 - _MAX_BEHIND and behind < _MAX_BEHIND_TICKS

    def _out_of_order(self, packet: Packet, ahead: int, now: float) -> list[Ordered]:
        out: list[Ordered] = []
        if ahead > _MAX_AHEAD:
            opened = self._given_up.pop(packet.sequence, None)
            if opened is not None:
                self.late += 1
                self._follow(now - opened)
            elif (packet.sequence - self._first) & _MASK >= 0x10000 - _MAX_BEHIND:
                self.late += 1
            else:
                self.duplicates += 1
        elif packet.sequence in self._held:
            self.duplicates += 1
        else:
            self._notice_lateness(packet, now)
            self._held[packet.sequence] = (packet, now)
            self.deadline = min(self.deadline, now + self.wait)
            if len(self._held) > HELD:
                self.overflows += 1
                self._give_up(out)
        self._close_due(out, now)
        return out

    def _notice_lateness(self, packet: Packet, now: float) -> None:
        """How long after a later packet this one came."""
        place = (packet.sequence - self._next) & _MASK
        overtook = [at for n, (_, at) in self._held.items() if (n - self._next) & _MASK > place]
        if overtook:
            self._follow(now - min(overtook))

    def _follow(self, lateness: float) -> None:
        if lateness <= MAX_WAIT_S:  # else no wait would have helped
            self.wait = max(self.wait, min(lateness * _MARGIN, MAX_WAIT_S))

    def _drain(self, out: list[Ordered]) -> None:
        """Give out what follows without a gap, and wait for the next gap."""
        while (kept := self._held.pop(self._next, None)) is not None:
            self._advance(kept[0])
            out.append(Ordered(kept[0]))
        self.deadline = (
            min(at for _, at in self._held.values()) + self.wait if self._held else math.inf
        )

    def _close_due(self, out: list[Ordered], now: float) -> None:
        while self._held and now >= self.deadline:
            self._give_up(out)

    def _give_up(self, out: list[Ordered]) -> None:
        """Close the first gap: nobody waits for what is missing any more."""
        missing = min((n - self._next) & _MASK for n in self._held)
        opened = min(at for _, at in self._held.values())
        after = self._next + missing
        for n in range(max(self._next, after - _MAX_BEHIND), after):
            self._given_up[n & _MASK] = opened
        while len(self._given_up) > _MAX_BEHIND:
            del self._given_up[next(iter(self._given_up))]
        self.wait += (WAIT_S - self.wait) * _RETURN
        self._next = after & _MASK
        at = len(out)
        self._drain(out)
        out[at] = out[at]._replace(missing=missing)

    def _strange(self, packet: Packet, now: float) -> list[Ordered]:
        """A packet of a foreign sequence: dropped, unless it goes on (the sender restarted)."""
        run = self._run
        if run:
            step = (packet.sequence - run[-1].sequence) & _MASK
            if run[-1].ssrc != packet.ssrc or not 0 < step <= _RUN_STEP:
                self._forget_run()
        self._run.append(packet)
        if len(self._run) < RESYNC_AFTER:
            return []
        self.resyncs += 1
        run, self._run = self._run, []
        return self._begin(run, now)

    def _forget_run(self) -> None:
        self.foreign += len(self._run)
        self._run = []

    def _begin(self, packets: list[Packet], now: float) -> list[Ordered]:
        """Give out all of the old source, then go on with the new one."""
        out: list[Ordered] = []
        while self._held:
            self._give_up(out)
        first, *others = packets
        if first.ssrc != self._ssrc:
            self._left, self._ssrc = self._ssrc, first.ssrc
        self._forget_run()
        self._given_up.clear()
        self._first = first.sequence
        self._advance(first)
        out.append(Ordered(first, fresh=True))
        for packet in others:
            out += self.add(packet, now)
        return out
