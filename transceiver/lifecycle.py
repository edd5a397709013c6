"""The states of a call, why it ends, and when its set-up steps happened. Values only."""

import enum
from dataclasses import dataclass

PHASES = ("answer", "ice", "dtls", "channel", "first_audio")


class State(enum.StrEnum):
    NEW = "new"  # answered, and nothing of the client came yet
    CONNECTING = "connecting"  # an authentic check came
    CONNECTED = "connected"  # DTLS is done
    AWAY = "away"  # connected, and the client is silent
    ENDED = "ended"


class End(enum.StrEnum):
    """Why a call ended; also the `reason` label of a counter."""

    HANGUP = "hangup"  # by the control API
    CLOSED_BY_PEER = "closed_by_peer"  # close_notify, or a message that says so
    RESUMED = "resumed"  # its client is at another call, which carries this one on
    BACKEND_ENDED = "backend_ended"  # the model hung up
    EXPIRED = "expired"  # the session's length
    SETUP_TIMEOUT = "setup_timeout"
    CONSENT_LOST = "consent_lost"  # RFC 7675
    DTLS_FAILED = "dtls_failed"
    FINGERPRINT_MISMATCH = "fingerprint_mismatch"
    NO_SRTP_PROFILE = "no_srtp_profile"
    SLOW_CLIENT = "slow_client"  # too much waits for it on its data channels
    SHUTDOWN = "shutdown"
    INTERNAL_ERROR = "internal_error"


@dataclass(slots=True)
class Timeline:
    """Milliseconds from the offer's arrival to each step; None = not yet."""

    answer_ms: float | None = None
    ice_ms: float | None = None
    dtls_ms: float | None = None
    channel_ms: float | None = None
    first_audio_ms: float | None = None

    def mark(self, phase: str, elapsed_s: float) -> bool:
        """Note that `phase` is done; whether this was the first time."""
        name = f"{phase}_ms"
        if getattr(self, name) is not None:
            return False
        setattr(self, name, round(elapsed_s * 1000, 3))
        return True

    @property
    def reached(self) -> str:
        """The last step that was done."""
        done = [phase for phase in PHASES if getattr(self, f"{phase}_ms") is not None]
        return done[-1] if done else "nothing"
