"""What an ICE agent tells its user: events, and why a datagram changed nothing. Values only."""

import enum
from collections.abc import Hashable
from dataclasses import dataclass

PathKey = Hashable
"""Whatever names a path for the user of the agent: the 38 SPP header bytes, or an address."""


class Drop(enum.StrEnum):
    """Why a STUN datagram changed nothing; the `reason` label of a counter."""

    NOT_STUN = "not_stun"
    NOT_A_CHECK = "not_a_check"  # an indication, or another method
    MALFORMED = "malformed"
    BAD_FINGERPRINT = "bad_fingerprint"
    NO_USERNAME = "no_username"
    WRONG_USERNAME = "wrong_username"
    NO_INTEGRITY = "no_integrity"
    WRONG_INTEGRITY = "wrong_integrity"
    ROLE_CONFLICT = "role_conflict"  # authentic, answered with 487
    UNKNOWN_TRANSACTION = "unknown_transaction"
    ERROR_RESPONSE = "error_response"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Asked:
    """Our check is on its way: its response comes from `path` with this transaction id."""

    path: PathKey
    transaction_id: bytes


@dataclass(frozen=True, slots=True)
class Settled:
    """The check is answered or given up: nobody waits for this transaction id any more."""

    path: PathKey
    transaction_id: bytes


@dataclass(frozen=True, slots=True)
class Proven:
    """The client answered our own check on `path`: the path is this call's.

    Said when a path becomes proven, and again under the credentials of a restart."""

    path: PathKey


@dataclass(frozen=True, slots=True)
class Selected:
    """Everything is sent to `path` from now on: first selection, or a move."""

    path: PathKey


@dataclass(frozen=True, slots=True)
class Forgotten:
    """`path` left the table (limit, or long silence): if this call owned it, it no longer does."""

    path: PathKey


@dataclass(frozen=True, slots=True)
class Retired:
    """Credentials with this ufrag of ours are valid no longer: take the ufrag off the mux."""

    ufrag: str


@dataclass(frozen=True, slots=True)
class Away:
    """Nothing authentic came for `away_after_s`."""


@dataclass(frozen=True, slots=True)
class Back:
    """Something authentic came after `Away`."""


@dataclass(frozen=True, slots=True)
class Dead:
    """Nothing authentic came for `consent_s`: the agent is over, sends and answers nothing."""


Event = Asked | Settled | Proven | Selected | Forgotten | Retired | Away | Back | Dead
