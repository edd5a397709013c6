"""Our own checks: who is asked, how often, and which transaction ids are waited for.

Sans-IO. Two paces: a connectivity check repeats the same transaction (RFC 8489 section 6.2.1),
each consent check is a transaction of its own (RFC 7675 section 5.1). Both are sent three times
at most, so that whoever puts a stranger's source address on a client's check gains nothing.
"""

import math
from collections.abc import Callable, Iterator

from transceiver.ice.event import Asked, Event, PathKey, Settled
from transceiver.ice.path import Ask, Path, Paths, Round
from transceiver.ice.stun import (
    TIE_BREAKER_SIZE,
    TRANSACTION_ID_SIZE,
    Credentials,
    write_check,
)

TRANSMISSIONS = 3
CHECK_RTO_S = 0.1  # doubles
CONSENT_RTO_S = 0.5
URGENT_RTO_S = 0.05  # at least, of a path that is silent while the client is heard elsewhere
ROUND_S = 2.0  # from one round of connectivity checks to a path to the next
ANSWERABLE_S = 5.0  # how long a response may take
MAX_UNPROVEN = 4  # addresses that are asked at a time without having proved anything
CONSENT_S = (4.0, 6.0)  # RFC 7675 section 5.1: 5 s, randomised by 20 %


class Checks:
    """Sends through `datagrams` and reports through `events`, both the agent's."""

    def __init__(
        self,
        paths: Paths,
        datagrams: list[tuple[bytes, PathKey]],
        events: list[Event],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._paths = paths
        self._datagrams = datagrams
        self._events = events
        self._random_bytes = random_bytes
        self._tie_breaker = random_bytes(TIE_BREAKER_SIZE)

    def ask(self, path: Path, credentials: Credentials, now: float) -> None:
        """Start connectivity checks to `path`, unless they run, just ended or are too many."""
        if path.round is not None and _is_enough(path.round, credentials, now):
            return
        if path.proof is None and self._paths.unproven_asked() >= MAX_UNPROVEN:
            return
        self._begin(path, Round(credentials, consent=False, began=now), now)

    def ask_consent(
        self, path: Path, credentials: Credentials, now: float, *, urgent: bool = False
    ) -> None:
        """Ask the selected path whether it still wants our packets. `urgent`: the client waits on
        another one; an answer may take two of its usual round trips, no more."""
        pause = CONSENT_RTO_S
        if urgent and path.rtt is not None:
            pause = min(max(2 * path.rtt, URGENT_RTO_S), CONSENT_RTO_S)
        self._begin(path, Round(credentials, True, now, pause), now)

    def plan_consent(self, path: Path, now: float) -> None:
        first, last = CONSENT_S
        path.consent_due = now + first + (last - first) * self._random_bytes(1)[0] / 256

    def advance(self, path: Path, now: float) -> bool:
        """Send again what is due. True when three consents have gone unanswered just now."""
        self._expire(path, now)
        if path.round is None or now < path.round.due:
            return False
        if path.round.sent < TRANSMISSIONS:
            self._transmit(path, path.round, now)
            return False
        path.round.due = math.inf
        return path.round.consent

    def answered(self, path: Path, transaction_id: bytes, now: float) -> None:
        """Take an authentic response: settles all that was asked under the same credentials."""
        ask = path.asks[transaction_id]
        if not ask.repeated:
            path.rtt = now - ask.sent
        self.settle(path, ask.credentials)

    def settle(self, path: Path, credentials: Credentials | None = None) -> None:
        """Wait no longer for responses on `path`, under `credentials` or at all."""
        for transaction_id, ask in list(path.asks.items()):
            if credentials is None or ask.credentials is credentials:
                self._drop(path, transaction_id)
        if path.round and (credentials is None or path.round.credentials is credentials):
            path.round = None

    def deadline(self) -> float:
        """When a path has to be asked again, or a transaction is given up."""
        return min((self._deadline_of(path) for path in self._paths), default=math.inf)

    def _deadline_of(self, path: Path) -> float:
        due = math.inf if path.round is None else path.round.due
        oldest = next(iter(path.asks.values()), None)
        return due if oldest is None else min(due, oldest.sent + ANSWERABLE_S)

    def outstanding(self) -> Iterator[tuple[PathKey, bytes]]:
        return ((path.key, transaction_id) for path in self._paths for transaction_id in path.asks)

    def _begin(self, path: Path, new: Round, now: float) -> None:
        path.round = new
        self._transmit(path, new, now)

    def _transmit(self, path: Path, current: Round, now: float) -> None:
        ask = None if current.consent else path.asks.get(current.transaction_id)
        if ask is None:
            self._open_transaction(path, current, now)
        else:
            ask.repeated = True
        self._datagrams.append((current.datagram, path.key))
        pause = current.pause if current.consent else CHECK_RTO_S * 2**current.sent
        current.sent += 1
        current.due = now + pause

    def _open_transaction(self, path: Path, current: Round, now: float) -> None:
        transaction_id = current.transaction_id = self._random_bytes(TRANSACTION_ID_SIZE)
        current.datagram = write_check(transaction_id, current.credentials, self._tie_breaker)
        path.asks[transaction_id] = Ask(current.credentials, now)
        self._events.append(Asked(path.key, transaction_id))

    def _expire(self, path: Path, now: float) -> None:
        for transaction_id, ask in list(path.asks.items()):
            if now >= ask.sent + ANSWERABLE_S:
                self._drop(path, transaction_id)

    def _drop(self, path: Path, transaction_id: bytes) -> None:
        del path.asks[transaction_id]
        self._events.append(Settled(path.key, transaction_id))


def _is_enough(last: Round, credentials: Credentials, now: float) -> bool:
    """The last round runs, or just ended: no new one yet."""
    same = last.credentials is credentials and not last.consent
    return same and (not last.over or now < last.began + ROUND_S)
