"""A parrot on the line: packets of Opus in, frames and events out, on a clock of its own."""

from collections.abc import Mapping
from typing import Any

from tests.unit.transceiver.backends.around import Peer, Wire
from transceiver.backends.parrot import Parrot
from transceiver.rtp import FRAME, Packet
from transceiver.turns.vad import Stock

STEP_S = 0.02
SLOT_S = 0.007  # from the arrival of a packet to the next slot of the downlink


class ParrotLine:
    """One call. Its clock begins at 0."""

    def __init__(self, stock: Stock, session: Mapping[str, Any], **parrot: Any) -> None:
        """`session` as at a call's creation; `parrot` as `Parrot` has it."""
        self._peer, self._wire = Peer(session), Wire(SLOT_S)
        self._parrot = Parrot(self._peer, stock, **parrot)
        self._parrot.begin(self._wire, SLOT_S)
        self._packets = 0
        self.told: list[tuple[str, float]] = []  # types of events, and when

    @property
    def now(self) -> float:
        """When the last packet arrived."""
        return self._packets * STEP_S

    @property
    def frames(self) -> list[tuple[float, bytes | None]]:
        """What left, and when; None is silence."""
        return self._wire.frames

    def step(self, payload: bytes) -> None:
        """20 ms pass, then a packet arrives."""
        number = self._packets
        self._packets += 1
        while (due := max(self._wire.now, self._parrot.deadline)) < self.now:
            self._wire.run(due)
            self._parrot.timer(due)
            self._note()
        self._wire.run(self.now)
        self._note()
        packet = Packet(111, number & 0xFFFF, number * FRAME & 0xFFFFFFFF, 1, payload)
        self._parrot.receive(packet, True, self.now)
        self._note()

    def end(self) -> None:
        self._parrot.close()

    def _note(self) -> None:
        fresh = self._peer.said[len(self.told) :]
        self.told += [(event["type"], self._wire.now) for event in fresh]
