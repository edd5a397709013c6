"""What all calls of a process share: made once by the composition root, handed to each call."""

import base64
from collections.abc import Callable
from dataclasses import dataclass

from transceiver.audio.pacer import Pacer
from transceiver.backends.base import BackendFactory
from transceiver.dtls import Identity
from transceiver.mux import Mux
from transceiver.resume.writer import Writer


@dataclass(frozen=True)
class Surroundings:
    mux: Mux
    pacer: Pacer
    identity: Identity
    backend: str  # its name, for people
    make_backend: BackendFactory
    random_bytes: Callable[[int], bytes]
    observe: Callable[[str, float], None]  # set-up phase, seconds since the offer
    stamp: Callable[[], str]  # the time of day in ISO 8601
    records: Writer | None = None  # of calls, for when this process dies
    away_after_s: float = 10.0
    consent_s: float = 30.0
    setup_s: float = 15.0

    def new_id(self, kind: str) -> str:
        """An identifier like `event_…`: a `NewId`."""
        return f"{kind}_{base64.urlsafe_b64encode(self.random_bytes(12)).decode()}"
