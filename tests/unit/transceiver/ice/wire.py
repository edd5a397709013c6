"""A controlling ICE client and a wire to the agent, in simulated time.

The client writes and reads STUN with aioice's codec alone, so it judges what the agent sends.
"""

import functools
import heapq
import itertools
from collections.abc import Callable

from aioice import stun

from relayctl.wire.address import Address
from transceiver.ice import Agent, Credentials, Drop, Event, PathKey, Selected

OURS = Credentials("IWwJ+/iUTKZerg88cJwZO0e0", "p" * 32, "g2D0", "uH7uotKbjES9jbvqSHAJnW+N")
SECOND = Credentials("B" * 24, "q" * 32, "second", "s" * 24)
THIRD = Credentials("C" * 24, "r" * 32, "third", "t" * 24)

A, B = "path a", "path b"

CLIENT: Address = ("198.51.100.7", 40000)


def counter() -> Callable[[int], bytes]:
    """Stands for `secrets.token_bytes`: never the same bytes twice."""
    numbers = itertools.count(1)
    return lambda size: next(numbers).to_bytes(12, "big")[-size:]


def check(
    credentials: Credentials = OURS,
    *,
    nominate: bool = False,
    pwd: str | None = None,
    username: str | None = None,
    transaction_id: bytes | None = None,
    role: str = "ICE-CONTROLLING",
) -> bytes:
    """A client's connectivity check."""
    message = stun.Message(stun.Method.BINDING, stun.Class.REQUEST, transaction_id)
    message.attributes["USERNAME"] = username or f"{credentials.ufrag}:{credentials.remote_ufrag}"
    message.attributes["PRIORITY"] = 1853824767
    message.attributes[role] = 7
    if nominate:
        message.attributes["USE-CANDIDATE"] = None
    message.add_message_integrity((pwd or credentials.pwd).encode())
    return bytes(message)


def answer(datagram: bytes, pwd: str = OURS.remote_pwd, error: int | None = None) -> bytes:
    """The client's answer to a check of the agent."""
    request = stun.parse_message(datagram)
    kind = stun.Class.RESPONSE if error is None else stun.Class.ERROR
    message = stun.Message(stun.Method.BINDING, kind, request.transaction_id)
    if error is None:
        message.attributes["XOR-MAPPED-ADDRESS"] = ("203.0.113.10", 3478)
    else:
        message.attributes["ERROR-CODE"] = (error, "")
    message.add_message_integrity(pwd.encode())
    return bytes(message)


class Wire:
    """Carries datagrams with a delay; what the client does on a path is switched here."""

    def __init__(self, agent: Agent, delay: float = 0.02) -> None:
        self.agent = agent
        self.delay = delay
        self.now = 1000.0
        self.dead: set[PathKey] = set()  # nothing passes, either way
        self.mute: set[PathKey] = set()  # the client answers no check that comes here
        self.credentials = [OURS]  # those under which the client answers
        self.log: list[tuple[float, Event]] = []
        self.sent: list[tuple[float, PathKey, stun.Message]] = []
        self.drops: list[Drop] = []
        self._plans: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def at(self, delay: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._plans, (self.now + delay, next(self._order), action))

    def every(self, period: float, action: Callable[[], None], first: float = 0.0) -> None:
        def again() -> None:
            action()
            self.at(period, again)

        self.at(first, again)

    def check(
        self, path: PathKey, *, nominate: bool = False, credentials: Credentials = OURS
    ) -> None:
        """The client asks from `path`."""
        self._up(path, check(credentials, nominate=nominate))

    def media(self, path: PathKey, newest: bool = True) -> None:
        """An authentic SRTP packet comes from `path`."""
        if path not in self.dead:
            self.at(self.delay, lambda: self.agent.media(path, self.now, newest))

    def run(self, seconds: float) -> None:
        """Until `seconds` from now, waking the agent only when it asked for it."""
        end = self.now + seconds
        still = 0
        self._flush()
        while True:
            plan = self._plans[0][0] if self._plans else end
            due = self.agent.next_deadline()
            when = max(self.now, min(plan, due, end))
            still = still + 1 if when == self.now else 0
            assert still < 1000, "the agent asks to be woken again and again"
            self.now = when
            if self._plans and plan <= when:
                heapq.heappop(self._plans)[2]()
            elif due <= when:
                self.agent.timer(when)
            elif when >= end:
                return
            self._flush()

    def events(self, kind: type[Event]) -> list[Event]:
        return [event for _, event in self.log if isinstance(event, kind)]

    def selections(self) -> list[PathKey]:
        return [event.path for _, event in self.log if isinstance(event, Selected)]

    def asked(self, path: PathKey) -> list[float]:
        """When the agent sent checks to `path`."""
        return [
            when
            for when, where, message in self.sent
            if where == path and message.message_class is stun.Class.REQUEST
        ]

    def _up(self, path: PathKey, datagram: bytes) -> None:
        if path in self.dead:
            return

        def arrive() -> None:
            drop = self.agent.receive(datagram, path, CLIENT, self.now)
            if drop is not None:
                self.drops.append(drop)

        self.at(self.delay, arrive)

    def _flush(self) -> None:
        for datagram, path in self.agent.datagrams:
            self.sent.append((self.now, path, stun.parse_message(datagram)))
            if path not in self.dead:
                self.at(self.delay, functools.partial(self._down, path, datagram))
        self.log += [(self.now, event) for event in self.agent.events]
        self.agent.datagrams.clear()
        self.agent.events.clear()

    def _down(self, path: PathKey, datagram: bytes) -> None:
        message = stun.parse_message(datagram)
        if message.message_class is not stun.Class.REQUEST or path in self.mute:
            return
        for credentials in self.credentials:
            if message.attributes["USERNAME"] == f"{credentials.remote_ufrag}:{credentials.ufrag}":
                assert message.check_message_integrity(credentials.remote_pwd.encode())
                self._up(path, answer(datagram, credentials.remote_pwd))
                return
        self._up(path, answer(datagram, error=401))


def connect(wire: Wire, *paths: str) -> None:
    """Prove all `paths`, nominate the first one; forget how it went."""
    for path in paths:
        wire.check(path, nominate=path == paths[0])
    wire.run(0.5)
    wire.log.clear()
    wire.sent.clear()
