"""Who may be connected: a bound for each client address and one in all. Pure.

When the house is full the visitor that has asked for nothing for the longest time has to go, so
connections that are only held do not keep others out.
"""

import ipaddress
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from signaling.access.limits import network_of

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(eq=False, slots=True)
class Visitor:
    """A connection. `turn_out` ends it at once."""

    name: str
    turn_out: Callable[[], object]


class Gate:
    """`limit` in all, `per_address` for each client address or IPv6 /64, 0 for no such bound.
    Proxies in `trusted` come for many."""

    def __init__(self, limit: int, per_address: int, trusted: Iterable[Network] = ()) -> None:
        self._limit = limit
        self._per_address = per_address
        self._trusted = tuple(trusted)
        self._inside: set[Visitor] = set()
        self._of: Counter[str] = Counter()
        self._waiting: OrderedDict[Visitor, None] = OrderedDict()  # since longest first

    def __len__(self) -> int:
        return len(self._inside)

    def enter(self, host: str, turn_out: Callable[[], object]) -> Visitor | None:
        """A new connection from `host`, which waits; None if it has to be closed."""
        visitor = Visitor("" if self._is_trusted(host) else network_of(host), turn_out)
        if visitor.name and self._per_address and self._of[visitor.name] >= self._per_address:
            return None
        if len(self._inside) >= self._limit:
            idle = next(iter(self._waiting), None)
            if idle is None:
                return None
            self.leave(idle)
            idle.turn_out()
        self._inside.add(visitor)
        self._of[visitor.name] += 1
        self._waiting[visitor] = None
        return visitor

    def leave(self, visitor: Visitor) -> None:
        """It is gone. Nothing happens if that was known."""
        if visitor not in self._inside:
            return
        self._inside.remove(visitor)
        self._waiting.pop(visitor, None)
        self._of[visitor.name] -= 1
        if not self._of[visitor.name]:
            del self._of[visitor.name]

    def waits(self, visitor: Visitor) -> None:
        """It has no request under way any more."""
        if visitor in self._inside:
            self._waiting[visitor] = None

    def works(self, visitor: Visitor) -> None:
        """It has one."""
        self._waiting.pop(visitor, None)

    def _is_trusted(self, host: str) -> bool:
        if not self._trusted:
            return False
        try:
            ip = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(ip in network for network in self._trusted)
