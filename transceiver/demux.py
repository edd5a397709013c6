"""Whose datagram is it? The tables of one media socket. Pure.

Binding requests go by our ufrag, always. Binding responses go by path and transaction id.
Everything else goes by path, to the call that *proved* the path by an answer to its own check:
what another call says about that path changes nothing until that call's check is answered.
A path is any hashable value.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

C = TypeVar("C")
K = TypeVar("K")

MAX_CLAIMS = 4  # calls that one SSRC may select; each costs one SRTP authentication
MAX_OFFERED = 16  # SSRCs of one call that it claims without proof: a new one with each offer

Key = Hashable


class _Table(Generic[K, C]):
    """Which call a key belongs to, and which keys a call has: whoever goes costs what he holds."""

    def __init__(self) -> None:
        self._calls: dict[K, C] = {}
        self._keys: dict[C, set[K]] = {}
        self.get = self._calls.get  # once per packet: no call in between

    def __len__(self) -> int:
        return len(self._calls)

    def put(self, key: K, call: C) -> None:
        self.pop(key)
        self._calls[key] = call
        self._keys.setdefault(call, set()).add(key)

    def pop(self, key: K) -> None:
        call = self._calls.pop(key, None)
        if call is not None:
            self._keys[call].remove(key)

    def remove(self, call: C) -> None:
        for key in self._keys.pop(call, ()):
            del self._calls[key]


class Demux(Generic[C]):
    """Who owns what. Every entry of a call is gone after `remove`."""

    def __init__(self) -> None:
        self._by_ufrag: _Table[bytes, C] = _Table()
        self._by_transaction: _Table[tuple[Key, bytes], C] = _Table()
        self._owners: _Table[Key, C] = _Table()
        self._suitors: _Table[Key, C] = _Table()  # asked last, on a path that nobody owns
        self._by_ssrc: dict[int, list[C]] = {}
        self._ssrcs: dict[C, set[int]] = {}
        self.owner: Callable[[Key], C | None] = self._owners.get  # of a path; once per packet

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
        self._by_ufrag.put(ufrag.encode(), call)

    def retire(self, ufrag: str) -> None:
        self._by_ufrag.pop(ufrag.encode())

    def asked(self, path: Key, transaction_id: bytes, call: C) -> None:
        """A check of `call` is on its way: its response comes back from `path`."""
        self._by_transaction.put((path, transaction_id), call)
        if self._owners.get(path) is None:
            self._suitors.put(path, call)

    def settled(self, path: Key, transaction_id: bytes) -> None:
        self._by_transaction.pop((path, transaction_id))

    def proven(self, path: Key, call: C) -> C | None:
        """`call` owns `path` from now on. Returns the call that owned it, if it was another."""
        before = self._owners.get(path)
        self._owners.put(path, call)
        self._suitors.pop(path)
        return before if before is not None and before != call else None

    def forgotten(self, path: Key, call: C) -> None:
        """`call` has no use for `path` any more; another owner stays."""
        if self._owners.get(path) == call:
            self._owners.pop(path)
        if self._suitors.get(path) == call:
            self._suitors.pop(path)

    def claims(self, ssrc: int, call: C, *, proven: bool) -> None:
        """`call` says that it receives `ssrc`; `proven`: SRTP of that source was authentic."""
        if not proven and len(self._ssrcs.get(call, ())) >= MAX_OFFERED:
            return
        calls = self._by_ssrc.setdefault(ssrc, [])
        if proven and call in calls:
            calls.remove(call)
        if call not in calls:
            calls.insert(0 if proven else len(calls), call)
            self._ssrcs.setdefault(call, set()).add(ssrc)
            del calls[MAX_CLAIMS:]

    def remove(self, call: C) -> None:
        """Forget everything about `call`."""
        for table in (self._by_ufrag, self._by_transaction, self._owners, self._suitors):
            table.remove(call)
        for ssrc in self._ssrcs.pop(call, ()):
            calls = self._by_ssrc.get(ssrc, [])
            if call in calls:
                calls.remove(call)
            if not calls:
                self._by_ssrc.pop(ssrc, None)

    def request(self, ufrag: bytes) -> C | None:
        return self._by_ufrag.get(ufrag)

    def response(self, path: Key, transaction_id: bytes) -> C | None:
        return self._by_transaction.get((path, transaction_id))

    def suitor(self, path: Key) -> C | None:
        """The call that asked `path` last, while nobody owns it: DTLS may overtake the answer."""
        return self._suitors.get(path)

    def candidates(self, ssrc: int) -> tuple[C, ...]:
        """Calls that may own an SRTP packet from a path of no call, likeliest first."""
        return tuple(self._by_ssrc.get(ssrc, ()))
