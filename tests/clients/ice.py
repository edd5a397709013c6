"""A small ICE agent for test clients: controlling, one local and one remote address.

Sans-IO: datagrams and `now` in; datagrams out. It nominates with every check, as browsers do, and
knows nothing of candidates, pairs or lite peers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from aioice import stun

from relayctl.wire.address import Address

_PRIORITY = 1853824767  # a peer-reflexive candidate of the highest preference
_MAX_RTO_S = 1.6


@dataclass(frozen=True, slots=True)
class Credentials:
    ufrag: str
    pwd: str = field(repr=False)


@dataclass(slots=True)
class _Check:
    transaction: bytes
    remote: Address
    first: float  # when it was sent first
    due: float  # when it is sent again
    sent: int = 1
    remote_pwd: str = ""


class Agent:
    """Take the datagrams in `out` after each call and clear it."""

    def __init__(
        self, random_bytes: Callable[[int], bytes], *, rto_s: float = 0.1, consent_s: float = 2.5
    ) -> None:
        """`rto_s`: until the first retransmission. `consent_s`: between checks once connected."""
        self.out: list[tuple[bytes, Address]] = []
        self.selected: Address | None = None
        self.first_check_sent = 0  # transmissions of the very first check until its answer
        self.rtt_ms: float | None = None
        self.answered = 0  # checks of ours
        self._random = random_bytes
        self._rto_s = rto_s
        self._consent_s = consent_s
        self._tie_breaker = int.from_bytes(random_bytes(8), "big")
        self._passwords: dict[str, str] = {}  # by ufrag of ours, old ones too
        self._local: Credentials | None = None
        self._remote: Credentials | None = None
        self._target: Address | None = None
        self._check: _Check | None = None
        self._next = 0.0

    def start(self, local: Credentials, remote: Credentials, target: Address, now: float) -> None:
        """Begin, or restart under new credentials: media goes on over the old path meanwhile."""
        self._passwords[local.ufrag] = local.pwd
        self._local, self._remote, self._target = local, remote, target
        self._begin_check(now)

    def check_now(self, now: float) -> None:
        """Begin a check at once, as a browser does that noticed a new path."""
        self._begin_check(now)

    def receive(self, datagram: bytes, source: Address, now: float) -> None:
        """Take a STUN datagram. One that does not verify is ignored."""
        try:
            message = stun.parse_message(datagram)
        except ValueError:
            return
        if message.message_class is stun.Class.REQUEST:
            self._answer(message, source)
        elif message.message_class is stun.Class.RESPONSE:
            self._take_answer(message, source, now)

    def timer(self, now: float) -> None:
        """Repeat the check that is under way, or begin the next one."""
        check = self._check
        if check is None:
            if self._target is not None and now >= self._next:
                self._begin_check(now)
        elif now >= check.due:
            check.due = now + min(self._rto_s * 2**check.sent, _MAX_RTO_S)
            check.sent += 1
            self._send_check(check)

    def _begin_check(self, now: float) -> None:
        if self._target is None or self._remote is None:
            raise RuntimeError("the agent was not started")
        self._check = _Check(self._random(12), self._target, now, now + self._rto_s)
        self._send_check(self._check)

    def _send_check(self, check: _Check) -> None:
        assert self._local is not None
        assert self._remote is not None
        request = stun.Message(
            message_method=stun.Method.BINDING,
            message_class=stun.Class.REQUEST,
            transaction_id=check.transaction,
        )
        request.attributes["USERNAME"] = f"{self._remote.ufrag}:{self._local.ufrag}"
        request.attributes["PRIORITY"] = _PRIORITY
        request.attributes["ICE-CONTROLLING"] = self._tie_breaker
        request.attributes["USE-CANDIDATE"] = None
        request.add_message_integrity(self._remote.pwd.encode())
        request.add_fingerprint()
        check.remote_pwd = self._remote.pwd
        self.out.append((bytes(request), check.remote))

    def _answer(self, request: stun.Message, source: Address) -> None:
        ours = str(request.attributes.get("USERNAME", "")).partition(":")[0]
        pwd = self._passwords.get(ours)
        if pwd is None or not request.check_message_integrity(pwd.encode()):
            return
        response = stun.Message(
            message_method=stun.Method.BINDING,
            message_class=stun.Class.RESPONSE,
            transaction_id=request.transaction_id,
        )
        response.attributes["XOR-MAPPED-ADDRESS"] = source
        response.add_message_integrity(pwd.encode())
        response.add_fingerprint()
        self.out.append((bytes(response), source))

    def _take_answer(self, response: stun.Message, source: Address, now: float) -> None:
        check = self._check
        if check is None or response.transaction_id != check.transaction:
            return
        if not response.check_message_integrity(check.remote_pwd.encode()):
            return
        if not self.answered:
            self.first_check_sent = check.sent
        self.answered += 1
        if check.sent == 1:
            self.rtt_ms = (now - check.first) * 1e3
        self.selected = source
        self._check = None
        self._next = now + self._consent_s
