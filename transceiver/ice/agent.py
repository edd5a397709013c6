"""A full ICE agent in the controlled role, one local candidate per family (RFC 8445, RFC 7675).

Sans-IO: datagrams, values and `now` (seconds of one monotonic clock) in; datagrams and events out.
The client's candidates are not used: its first authentic check makes the path.
"""

import math
from collections.abc import Callable, Iterator, Mapping

from relayctl.wire.address import Address
from transceiver.ice import stun
from transceiver.ice.check import Checks
from transceiver.ice.event import Drop, Event, Forgotten, PathKey, Proven, Retired, Selected
from transceiver.ice.liveness import Liveness
from transceiver.ice.path import NEVER, STALE_S, Path, Paths
from transceiver.ice.selection import Selection
from transceiver.ice.stun import Credentials


class Agent:
    """ICE of one call.

    After each call of a method take what is in `datagrams` and `events`, and `clear()` both; the
    lists stay the same objects. `Away` and `Dead` count from the first selection: the set-up
    watchdog belongs to the call.
    """

    def __init__(
        self,
        credentials: Credentials,
        random_bytes: Callable[[int], bytes],
        *,
        away_after_s: float = 10.0,
        consent_s: float = 30.0,
    ) -> None:
        """`random_bytes(n)` has to be unpredictable: `secrets.token_bytes`."""
        self.datagrams: list[tuple[bytes, PathKey]] = []
        self.events: list[Event] = []
        self.moves = 0  # selections after the first
        self._creds = {credentials.ufrag: credentials}
        self._current = credentials  # the newest that a check of ours was answered under
        self._paths = Paths()
        self._checks = Checks(self._paths, self.datagrams, self.events, random_bytes)
        self._selection = Selection()
        self._liveness = Liveness(away_after_s, consent_s, self.events)

    @property
    def selected(self) -> PathKey | None:
        """Where to send. None until the first path is proven, or after `forget` left none."""
        present = self._selection.present
        return None if present is None else present.key

    @property
    def creds(self) -> Mapping[str, Credentials]:
        """Valid credentials by our ufrag: two entries during a restart."""
        return self._creds

    @property
    def rtt_ms(self) -> float | None:
        """Latest round trip of a check on the selected path."""
        present = self._selection.present
        return None if present is None or present.rtt is None else present.rtt * 1000

    def answering(self, remote_ufrag: str, remote_pwd: str) -> Credentials | None:
        """The valid credentials that go with those of the client; None = it restarts ICE."""
        theirs = (remote_ufrag, remote_pwd)
        valid = self._creds.values()
        return next((c for c in valid if (c.remote_ufrag, c.remote_pwd) == theirs), None)

    def receive(self, datagram: bytes, path: PathKey, client: Address, now: float) -> Drop | None:
        """Take a STUN datagram of this call: any bytes, never raises.

        `client` is what XOR-MAPPED-ADDRESS says. None if the message was authentic and used, else
        the reason to count. What fails is not answered and changes no state; only an authentic
        check in the wrong role gets its 487."""
        if self._liveness.ended:
            return Drop.ENDED
        try:
            message = stun.parse(datagram)
        except stun.StunError as error:
            return Drop(error.reason)
        if message.kind == stun.BINDING_REQUEST:
            return self._take_request(message, path, client, now)
        return self._take_response(message, path, now)

    def media(self, path: PathKey, now: float, newest: bool = True) -> None:
        """An authentic packet (SRTP, SRTCP, an accepted DTLS record) came from `path`.

        Cheap: call it for each. `newest`: the packet is ahead of all before it in its stream, so
        it shows where the client sends now; False (late packets, DTLS) counts for liveness only.
        From a path that is not known or not proven it is a hint: the path is asked, and everything
        moves there when it answers and the present path stayed silent meanwhile."""
        liveness = self._liveness
        known = self._paths.get(path)
        if known is None or known is not self._selection.present or liveness.ended:
            self._take_media_elsewhere(known, path, now, newest)
            return
        known.heard = known.media = liveness.heard = now
        if liveness.away:
            liveness.hear(now)

    def hint(self, path: PathKey, now: float) -> None:
        """Authentic SRTP came from a path of no call, and its SSRC led here: see `media`."""
        self.media(path, now)

    def restart(self, credentials: Credentials) -> None:
        """ICE restart (RFC 8445 section 9). The old credentials stay valid and the old path
        carries the media until a check of ours under the new ones is answered; then the old
        ufrag is `Retired`. A restart in flight gives way to the newer one.

        Raises `ValueError` when our ufrag is in use."""
        if credentials.ufrag in self._creds:
            raise ValueError("an ICE restart needs a new ufrag of ours: this one is in use")
        self._retire_all_but(self._current)
        self._creds[credentials.ufrag] = credentials

    def forget(self, path: PathKey, now: float) -> None:
        """Another call proved `path`: it is not ours. A later check from it starts anew."""
        known = self._paths.get(path)
        if known is None:
            return
        self._remove(known)
        if known is self._selection.present:
            self._selection.present = None
            others = [other for other in self._paths if other.proof]
            if others:
                self._select(max(others, key=lambda other: other.heard), now)

    def outstanding(self) -> Iterator[tuple[PathKey, bytes]]:
        """(path, transaction id) of each check that waits: what to take off the mux at the end."""
        return self._checks.outstanding()

    def timer(self, now: float) -> None:
        """Do what is due. May be called early, late or too often."""
        if not self._liveness.ended:
            self._liveness.watch(now)
        if not self._liveness.ended:
            self._watch_paths(now)

    def next_deadline(self) -> float:
        """When `timer` has work next; math.inf = never. Ask after each other method, or on each
        turn of a 50 ms wheel: then `media` needs no asking."""
        if self._liveness.ended:
            return math.inf
        present = self._selection.present
        stale = [path.heard + STALE_S for path in self._paths if path is not present]
        return min(
            self._liveness.deadline(),
            self._selection.ask_due(self._paths),
            self._checks.deadline(),
            *stale,
        )

    def _watch_paths(self, now: float) -> None:
        present = self._selection.present
        for path in self._paths:
            unanswered = self._checks.advance(path, now)
            if path is not present:
                if now >= path.heard + STALE_S:
                    self._remove(path)
            elif unanswered:
                path.lost = now
                self._ask_others(path, now)
        if present is not None and now >= self._selection.ask_due(self._paths):
            self._checks.plan_consent(present, now)
            urgent = self._selection.is_doubtful(self._paths)
            self._checks.ask_consent(present, self._current, now, urgent=urgent)

    def _ask_others(self, present: Path, now: float) -> None:
        for path in self._paths:
            if path is not present and path.proof:
                self._checks.ask(path, self._current, now)

    def _take_request(
        self, message: stun.Message, key: PathKey, client: Address, now: float
    ) -> Drop | None:
        credentials = self._credentials_of(message)
        if isinstance(credentials, Drop):
            return credentials
        if not message.verify(credentials.pwd):
            return Drop.WRONG_INTEGRITY if message.signed else Drop.NO_INTEGRITY
        if stun.ICE_CONTROLLED in message.attributes:
            self.datagrams.append((stun.write_role_conflict(message, credentials.pwd), key))
            return Drop.ROLE_CONFLICT
        self.datagrams.append((stun.write_success(message, client, credentials.pwd), key))
        path = self._paths.get(key) or self._learn(key)
        self._hear(path, now)
        proven = path.proof == credentials.ufrag
        if stun.USE_CANDIDATE in message.attributes and self._selection.nominate(path, proven, now):
            self._select(path, now)
        if not proven or self._selection.abandons(path):
            self._checks.ask(path, credentials, now)
        return None

    def _credentials_of(self, message: stun.Message) -> Credentials | Drop:
        username = message.attributes.get(stun.USERNAME)
        if username is None:
            return Drop.NO_USERNAME
        for credentials in self._creds.values():
            if username == f"{credentials.ufrag}:{credentials.remote_ufrag}".encode():
                return credentials
        return Drop.WRONG_USERNAME

    def _take_response(self, message: stun.Message, key: PathKey, now: float) -> Drop | None:
        path = self._paths.get(key)
        ask = None if path is None else path.asks.get(message.transaction_id)
        if path is None or ask is None:
            return Drop.UNKNOWN_TRANSACTION
        if message.kind == stun.BINDING_ERROR:
            return Drop.ERROR_RESPONSE  # no proof, and no reason to stop waiting for one
        if not message.verify(ask.credentials.remote_pwd):
            return Drop.WRONG_INTEGRITY if message.signed else Drop.NO_INTEGRITY
        self._checks.answered(path, message.transaction_id, now)
        self._prove(path, ask.credentials, now)
        return None

    def _prove(self, path: Path, credentials: Credentials, now: float) -> None:
        if path.proof != credentials.ufrag:
            path.proof = credentials.ufrag
            self.events.append(Proven(path.key))
        if credentials is not self._current:
            self._current = credentials
            self._retire_all_but(credentials)
        path.lost = NEVER
        moves = self._selection.proven(path, now)
        self._hear(path, now)
        if moves:
            self._select(path, now)

    def _take_media_elsewhere(
        self, known: Path | None, key: PathKey, now: float, newest: bool
    ) -> None:
        if self._liveness.ended:
            return
        path = known or self._learn(key)
        self._hear(path, now)
        moves = newest and self._selection.media(path, now)
        if path.proof is None:
            self._checks.ask(path, self._current, now)
        elif moves:
            self._select(path, now)

    def _select(self, path: Path, now: float) -> None:
        self.moves += self._liveness.begun
        self._liveness.begin(now)
        self._selection.present = path
        path.nomination_waits = False
        path.lost = NEVER
        self._checks.plan_consent(path, now)
        self.events.append(Selected(path.key))

    def _retire_all_but(self, kept: Credentials) -> None:
        for ufrag, credentials in list(self._creds.items()):
            if credentials is not kept:
                del self._creds[ufrag]
                self.events.append(Retired(ufrag))
                for path in self._paths:
                    self._checks.settle(path, credentials)

    def _hear(self, path: Path, now: float) -> None:
        path.heard = now
        self._liveness.hear(now)

    def _learn(self, key: PathKey) -> Path:
        surplus = self._paths.surplus(self._selection.present)
        if surplus is not None:
            self._remove(surplus)
        return self._paths.add(key)

    def _remove(self, path: Path) -> None:
        self._checks.settle(path)
        self._paths.pop(path.key)
        self.events.append(Forgotten(path.key))
