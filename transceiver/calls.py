"""All calls of this process: made, found by their ids, restarted, ended. The control API's core."""

import base64
import enum
import hmac
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from relayctl.wire.address import Address
from relayctl.wire.call_id import CallId, CallIdError, parse
from transceiver.admission import Admission, Refused
from transceiver.call import Call
from transceiver.dialects import realtime
from transceiver.dialects.base import Dialect
from transceiver.dialects.choice import DialectName, asked_for, choose
from transceiver.lifecycle import End, State
from transceiver.minting import Minter
from transceiver.resume.resumption import Reason as ResumeReason
from transceiver.resume.resumption import Resumed, ResumeError
from transceiver.sdp import Offer, parse_offer, with_credentials
from transceiver.sdp_answer import Local
from transceiver.session.settings import merged
from transceiver.surroundings import Surroundings

REMEMBERED = 1024  # ended calls that still answer "ended"
REMEMBERED_S = 60.0

_PWD_BYTES = 18  # 144 bits; at least 128 are wanted
_SECRET_BYTES = 17  # 22 characters and a little
_SECRET_LENGTH = 22


class Reason(enum.StrEnum):
    """Why a call cannot be had."""

    UNKNOWN = "call_not_found"
    ENDED = "call_ended"


class CallError(LookupError):
    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Ended:
    id: CallId
    subject: str
    at: float
    shown: dict[str, object]


class Calls:
    def __init__(self, around: Surroundings, minter: Minter, admission: Admission) -> None:
        self.admission = admission
        self._around = around
        self._minter = minter
        self._live: dict[str, Call] = {}
        self._waiting: dict[str, str] = {}  # token -> subject of calls that were not connected yet
        self._ended: OrderedDict[str, _Ended] = OrderedDict()

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[Call]:
        return iter(tuple(self._live.values()))

    def half_open(self) -> Counter[str]:
        """Calls that are not connected yet, by subject."""
        for token in [token for token in self._waiting if not self._is_waiting(token)]:
            del self._waiting[token]
        return Counter(self._waiting.values())

    def _is_waiting(self, token: str) -> bool:
        call = self._live.get(token)
        return call is not None and call.state in (State.NEW, State.CONNECTING)

    def create(
        self,
        offer: str,
        vips: tuple[Address, ...],
        dialect: DialectName,
        subject: str = "",
        session: Mapping[str, Any] | None = None,
        resumed: Resumed | None = None,
    ) -> tuple[str, str]:
        """Call id and SDP answer. `subject`: on whose behalf, for limits; "" for nobody's.
        `session`: what the backend is asked for. `resumed`: the call to carry on, whose settings
        go before these.

        Raises `Refused`, `SdpError`, `ValueError` (VIPs)."""
        born = self._around.mux.clock()
        try:
            self.admission.admit(len(self._live), self.half_open(), subject)
        except Refused as refused:
            self._around.mux.counts.refused[refused.reason] += 1
            raise
        parsed = parse_offer(offer)
        token = self._minter.mint(born)
        call_id = CallId(token, self._letters(_SECRET_BYTES)[:_SECRET_LENGTH])
        numbers = self._around.random_bytes(20)
        local = Local(
            ufrag=token,
            pwd=self._pwd(),
            fingerprint=self._around.identity.fingerprint,
            ssrc=int.from_bytes(numbers[:4], "big"),
            cname=numbers[4:12].hex(),
            candidates=vips,
            session_id=int.from_bytes(numbers[12:], "big") >> 2,
        )
        call = Call(
            self._around,
            call_id,
            parsed,
            local,
            lambda label: choose(dialect, label, self._around.new_id, self._around.stamp),
            self._asked(dialect, session or {}, resumed),
            born,
            self._forget,
            subject,
            resumes=resumed.old if resumed else None,
            restored=resumed.record.items if resumed else (),
        )
        answer = call.begin()
        self._live[token] = call
        self._waiting[token] = subject
        if resumed is not None and self._around.records is not None:
            self._around.records.changed(call)  # the old id is used up: this one has to do
        return call_id.render(), answer

    def _asked(
        self, dialect: DialectName, session: Mapping[str, Any], resumed: Resumed | None
    ) -> Mapping[str, Any]:
        asked = asked_for(dialect, session)
        return asked if resumed is None else merged(dict(asked), dict(resumed.record.session))

    def restart(self, call_id: str, offer: str) -> str:
        """The answer of an ICE restart. Raises `CallError` and `SdpError`."""
        return self._restart(self.find(call_id), parse_offer(offer))

    def restart_ice(self, call_id: str, ufrag: str, pwd: str) -> str:
        """As `restart`, when the client names new credentials and nothing else: the answer."""
        call = self.find(call_id)
        return self._restart(call, with_credentials(call.offer, ufrag, pwd))

    def _restart(self, call: Call, offer: Offer) -> str:
        return call.restart(offer, self._minter.mint(self._around.mux.clock()), self._pwd())

    def hang_up(self, call_id: str, subject: str | None = None) -> None:
        """Raises `CallError`, as `find`."""
        self.find(call_id, subject).end(End.HANGUP)

    async def hand_over(self, call_id: str, subject: str | None = None) -> None:
        """End the call for another to carry it on, once its record is written. Raises `CallError`,
        as `find`, and `ResumeError` if it cannot be: then it goes on."""
        call, records = self.find(call_id, subject), self._around.records
        if records is None or not await records.flush(call):
            detail = "the call's record cannot be written: it goes on"
            raise ResumeError(ResumeReason.UNAVAILABLE, detail)
        call.end(End.RESUMED)

    def finish(self, call_id: str) -> None:
        """Hang up once the backend has said its last words. Raises `CallError`."""
        self.find(call_id).finish(End.HANGUP)

    def describe(self, call_id: str) -> dict[str, object]:
        """The call, also when it has just ended. Raises `CallError`."""
        found = self._find(call_id)
        return found.shown if isinstance(found, _Ended) else found.describe()

    def find(self, call_id: str, subject: str | None = None) -> Call:
        """The call, if it is that of `subject`; None: whoever's. Raises `CallError`: who asks for
        another's call does not learn that there is one."""
        found = self._find(call_id)
        if subject is not None and found.subject != subject:
            raise CallError(Reason.UNKNOWN, f"no call {found.id.public}")
        if isinstance(found, _Ended):
            raise CallError(Reason.ENDED, f"the call ended: {found.shown['reason']}")
        return found

    def sideband(self, dialect: DialectName) -> Dialect:
        """What a sideband speaks, whatever the client's channel does."""
        return choose(dialect, realtime.LABEL, self._around.new_id, self._around.stamp)

    def now(self) -> float:
        """The calls' own time, in seconds."""
        return self._around.mux.clock()

    def finish_all(self) -> None:
        """Let every backend say its last words."""
        for call in self:
            call.finish(End.SHUTDOWN)

    def end_all(self) -> None:
        for call in self:
            call.end(End.SHUTDOWN)

    def _find(self, text: str) -> Call | _Ended:
        self._expire()
        try:
            call_id = parse(text)
        except CallIdError as error:
            raise CallError(Reason.UNKNOWN, str(error)) from None
        found = self._live.get(call_id.token) or self._ended.get(call_id.token)
        if found is None or not hmac.compare_digest(found.id.secret, call_id.secret):
            raise CallError(Reason.UNKNOWN, f"no call {call_id.public}")
        return found

    def _forget(self, call: Call) -> None:
        self._live.pop(call.id.token, None)
        self._waiting.pop(call.id.token, None)
        now = self._around.mux.clock()
        self._ended[call.id.token] = _Ended(call.id, call.subject, now, call.describe())
        self._expire()

    def _expire(self) -> None:
        now = self._around.mux.clock()
        while self._ended:
            oldest = next(iter(self._ended.values()))
            if len(self._ended) <= REMEMBERED and now - oldest.at < REMEMBERED_S:
                return
            self._ended.popitem(last=False)

    def _pwd(self) -> str:
        return base64.b64encode(self._around.random_bytes(_PWD_BYTES)).decode()

    def _letters(self, size: int) -> str:
        """`size` random bytes as base64url letters, unpadded."""
        return base64.urlsafe_b64encode(self._around.random_bytes(size)).decode().rstrip("=")
