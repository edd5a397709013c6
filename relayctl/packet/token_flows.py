"""Which flows bear a token, and how many one token may have.

Pure. A token is one call, which needs one flow, and a few more while its client's address changes;
whoever copied it can send it in the name of any number of addresses. A flow that its endpoint
confirmed never goes for one that nobody confirmed.

The index is seldom told that a flow ended: whoever asks reads the flow and sees.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator

from relayctl.flow import Flow, FlowKey, State, idle

MAX_NEW = 8
MAX_CONFIRMED = 16
MAX_FLOWS = MAX_NEW + MAX_CONFIRMED

UNKNOWN = bytes(8)  # prefix of a flow whose token we have not seen: not counted

Read = Callable[[FlowKey], Flow | None]
Crowd = list[tuple[FlowKey, Flow]]
"""The flows of one token, in the order in which they were added."""


class TokenFlows:
    """Token prefix → keys of flows. Made for a million tokens with one flow each: bytes, and a list
    only where a token has several."""

    def __init__(self) -> None:
        self._keys: dict[bytes, bytes | list[bytes]] = {}
        self._unseen: Iterator[bytes] = iter(())

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, token: bytes) -> bool:
        """False for a token that surely no flow bears."""
        return token in self._keys

    def add(self, token: bytes, key: bytes) -> None:
        """The flow `key` was written with that token prefix."""
        if token == UNKNOWN:
            return
        known = self._keys.get(token)
        if known is None:
            self._keys[token] = key
        elif isinstance(known, list):
            if key not in known:
                known.append(key)
        elif known != key:
            self._keys[token] = [known, key]

    def adopt(self, flows: Iterable[tuple[bytes, bytes]]) -> None:
        """The same for many flows, as (token prefix, key)."""
        keys = self._keys
        for token, key in flows:
            if keys.setdefault(token, key) is not key:
                self.add(token, key)
        keys.pop(UNKNOWN, None)

    def forget(self, token: bytes, key: bytes) -> None:
        """The flow `key`, written with that token prefix, ended."""
        known = self._keys.get(token)
        if isinstance(known, list):
            if key in known:
                known.remove(key)
        elif known == key:
            del self._keys[token]

    def crowd(self, token: bytes, read: Read) -> Crowd:
        """The flows that bear the token now; the others are forgotten."""
        known = self._keys.get(token)
        if known is None:
            return []
        found = []
        for packed in known if isinstance(known, list) else [known]:
            key = FlowKey.read(packed)
            flow = read(key)
            if flow is not None and flow.token == token:
                found.append((key, flow))
        self._keep(token, found)
        return found

    def purge(self, read: Read, tokens: int) -> None:
        """Look at the next few tokens and forget the flows that ended."""
        for token in list(itertools.islice(self._unseen, tokens)):
            self.crowd(token, read)
            tokens -= 1
        if tokens:  # all were looked at: begin anew
            self._unseen = iter(list(self._keys))

    def _keep(self, token: bytes, crowd: Crowd) -> None:
        if len(crowd) > 1:
            self._keys[token] = [bytes(key) for key, _ in crowd]
        elif crowd:
            self._keys[token] = bytes(crowd[0][0])
        else:
            del self._keys[token]


def has_room(crowd: Crowd) -> bool:
    """Whether one more flow may be made, be it in the place of another `new` one."""
    return len(crowd) < MAX_FLOWS or any(flow.state is State.NEW for _, flow in crowd)


def displaced_by_new(crowd: Crowd) -> FlowKey | None:
    """The flow that goes when one more is made: the oldest `new` one."""
    new = [(flow.born, key) for key, flow in crowd if flow.state is State.NEW]
    if len(new) < MAX_NEW and len(crowd) < MAX_FLOWS:
        return None
    return min(new, key=lambda each: each[0])[1]


def surplus(crowd: Crowd, now: int) -> list[FlowKey]:
    """Confirmed flows beyond a token's share at stamp `now` (units): the longest idle ones."""
    confirmed = [(idle(flow, now), key) for key, flow in crowd if flow.state is State.CONFIRMED]
    confirmed.sort(key=lambda each: each[0], reverse=True)
    return [key for _, key in confirmed[: max(0, len(confirmed) - MAX_CONFIRMED)]]
