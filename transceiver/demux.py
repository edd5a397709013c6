"""Whose datagram is it? The tables of one media socket. Pure.

Binding requests go by our ufrag, always. Binding responses go by path and transaction id.
Everything else goes by path, to the call that *proved* the path by an answer to its own check:
what another call says about that path changes nothing until that call's check is answered.
A path is any hashable value.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

C = TypeVar("C")
K = TypeVar("K")

MAX_CLAIMS = 4  # calls that one SSRC may select; each costs one SRTP authentication

Key = Hashable


class Demux(Generic[C]):
    """Who owns what. Every entry of a call is gone after `remove`."""

    def __init__(self) -> None:
        self._by_ufrag: dict[bytes, C] = {}
        self._by_transaction: dict[tuple[Key, bytes], C] = {}
        self._owners: dict[Key, C] = {}
        self._suitors: dict[Key, C] = {}  # asked last, on a path that nobody owns
        self._by_ssrc: dict[int, list[C]] = {}

    def __len__(self) -> int:
        """Entries in all tables; 0 when no call is left."""
        return sum(
            len(table)
            for table in (
                self._by_ufrag,
                self._by_transaction,
                self._owners,
                self._suitors,
                self._by_ssrc,
            )
        )

    def add(self, ufrag: str, call: C) -> None:
        """Binding requests to `ufrag` are for `call` from now on."""
        self._by_ufrag[ufrag.encode()] = call

    def retire(self, ufrag: str) -> None:
        self._by_ufrag.pop(ufrag.encode(), None)

    def asked(self, path: Key, transaction_id: bytes, call: C) -> None:
        """A check of `call` is on its way: its response comes back from `path`."""
        self._by_transaction[path, transaction_id] = call
        if path not in self._owners:
            self._suitors[path] = call

    def settled(self, path: Key, transaction_id: bytes) -> None:
        self._by_transaction.pop((path, transaction_id), None)

    def proven(self, path: Key, call: C) -> C | None:
        """`call` owns `path` from now on. Returns the call that owned it, if it was another."""
        before = self._owners.get(path)
        self._owners[path] = call
        self._suitors.pop(path, None)
        return before if before is not None and before != call else None

    def forgotten(self, path: Key, call: C) -> None:
        """`call` has no use for `path` any more; another owner stays."""
        if self._owners.get(path) == call:
            del self._owners[path]
        if self._suitors.get(path) == call:
            del self._suitors[path]

    def claims(self, ssrc: int, call: C, *, proven: bool) -> None:
        """`call` says that it receives `ssrc`; `proven`: SRTP of that source was authentic."""
        calls = self._by_ssrc.setdefault(ssrc, [])
        if proven and call in calls:
            calls.remove(call)
        if call not in calls:
            calls.insert(0 if proven else len(calls), call)
            del calls[MAX_CLAIMS:]

    def remove(self, call: C) -> None:
        """Forget everything about `call`."""
        _take_out(self._by_ufrag, call)
        _take_out(self._by_transaction, call)
        _take_out(self._owners, call)
        _take_out(self._suitors, call)
        for ssrc in [ssrc for ssrc, calls in self._by_ssrc.items() if call in calls]:
            self._by_ssrc[ssrc].remove(call)
            if not self._by_ssrc[ssrc]:
                del self._by_ssrc[ssrc]

    def request(self, ufrag: bytes) -> C | None:
        return self._by_ufrag.get(ufrag)

    def response(self, path: Key, transaction_id: bytes) -> C | None:
        return self._by_transaction.get((path, transaction_id))

    def owner(self, path: Key) -> C | None:
        return self._owners.get(path)

    def suitor(self, path: Key) -> C | None:
        """The call that asked `path` last, while nobody owns it: DTLS may overtake the answer."""
        return self._suitors.get(path)

    def candidates(self, ssrc: int) -> tuple[C, ...]:
        """Calls that may own an SRTP packet from a path of no call, likeliest first."""
        return tuple(self._by_ssrc.get(ssrc, ()))


def _take_out(table: dict[K, C], call: C) -> None:
    for key in [key for key, owner in table.items() if owner == call]:
        del table[key]
