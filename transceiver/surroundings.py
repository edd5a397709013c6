"""What all calls of a process share: made once by the composition root, handed to each call."""

from collections.abc import Callable
from dataclasses import dataclass

from transceiver.audio.pacer import Pacer
from transceiver.backends.base import BackendFactory
from transceiver.dtls import Identity
from transceiver.mux import Mux


@dataclass(frozen=True)
class Surroundings:
    mux: Mux
    pacer: Pacer
    identity: Identity
    make_backend: BackendFactory
    random_bytes: Callable[[int], bytes]
    observe: Callable[[str, float], None]  # set-up phase, seconds since the offer
    away_after_s: float = 10.0
    consent_s: float = 30.0
    setup_s: float = 15.0
