"""Whose sound is on the wire, and how much of it the client has heard. Pure, over an `Outlet`.

Replies wait on the downlink one behind the other. What they are made of, parts of items, are ranges
on the time line of all samples that were ever played, and `Outlet.sent` is a point on it. What is
on the wire is heard later: half a round trip, and what the client's own buffer holds. So the ear's
place is where the wire was that long ago, read from a short history: it is right through underruns
and while the client is away. A frame of 20 ms is not heard at once, but from its first sample on.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from transceiver.backends.base import Outlet
from transceiver.remembered import Heard
from transceiver.session.commands import Cut

CLIENT_BUFFER_S = 0.040  # Chromium holds 20-34 ms, Firefox 37-61
MAX_DELAY_S = 2.0  # from wire to ear; a longer round trip is no measure of a live call
MAX_PARTS = 1000  # that wait
_FRAMES = round(MAX_DELAY_S / 0.02) + 2  # of history
_DROPPED = 100  # responses whose late chunks are known as such


class Audible(NamedTuple):
    """The first sample of this response is on the wire."""

    response_id: str


class Silent(NamedTuple):
    """The last one is, and no more will come."""

    response_id: str


Notice = Audible | Silent


class _Frame(NamedTuple):
    when: float
    before: int  # `Outlet.sent`
    after: int


@dataclass(slots=True)
class _Part:
    """Samples of one content part of an item: a range on the time line."""

    item_id: str
    content_index: int
    start: int
    end: int


@dataclass(slots=True)
class _Reply:
    response_id: str
    parts: list[_Part] = field(default_factory=list)  # never empty once it waits
    audible: bool = False
    ended: bool = False  # no more will come


class Playback:
    """Give the pacer's frames to `frame`; it and `end` tell what became audible or silent."""

    def __init__(self, outlet: Outlet, rate: int, client_buffer_s: float = CLIENT_BUFFER_S) -> None:
        """`rate` of all samples in Hz; `outlet` is open at that rate."""
        self._outlet = outlet
        self._rate = rate
        self._client_buffer_s = client_buffer_s
        self._replies: deque[_Reply] = deque()
        self._parts = 0  # of them all
        self._end = outlet.sent  # of the time line
        self._half = b""  # a sample of the newest reply
        self._dropped: deque[str] = deque(maxlen=_DROPPED)
        self._history: deque[_Frame] = deque(maxlen=_FRAMES)

    @property
    def playing(self) -> bool:
        """Whether a response has sound that waits, is on the wire, or may get more."""
        return bool(self._replies)

    @property
    def response_id(self) -> str | None:
        """The response that is on the wire, or will be next."""
        return self._replies[0].response_id if self._replies else None

    @property
    def waiting(self) -> int:
        """Samples that are not on the wire yet."""
        return self._end - self._outlet.sent

    def play(
        self, response_id: str, item_id: str, content_index: int, samples: bytes, now: float
    ) -> bool:
        """Queue 16-bit mono samples, as many bytes as there are. False: the response is over or
        another one has begun behind it (`stale`), or too much would wait; none was taken."""
        if self.stale(response_id):
            return False
        newest = self._replies[-1] if self._replies else None
        goes_on = newest is not None and newest.response_id == response_id
        if goes_on and self._half:
            samples = self._half + samples
        whole = len(samples) & ~1
        if self._parts >= MAX_PARTS or not self._outlet.play(samples[:whole]):
            return False
        self._half = samples[whole:]
        if newest is None or not goes_on:
            if not samples:
                return True
            newest = _Reply(response_id)
            self._replies.append(newest)
        self._lengthen(newest, item_id, content_index, whole // 2)
        return True

    def end(self, response_id: str, now: float) -> list[Notice]:
        """No more will come of this response."""
        for reply in self._replies:
            if reply.response_id == response_id:
                reply.ended = True
        return self._notices()

    def drop(self, response_id: str) -> None:
        """What still comes of this response is stale; what was taken plays on, see `clear`."""
        if response_id not in self._dropped:
            self._dropped.append(response_id)

    def stale(self, response_id: str) -> bool:
        """Whether `play` takes nothing of this response any more."""
        return response_id in self._dropped or any(
            reply.response_id == response_id and (reply.ended or reply is not self._replies[-1])
            for reply in self._replies
        )

    def holds(self, item_id: object) -> bool:
        """Whether sound of this item waits or is on the wire, or may be followed by more."""
        return any(part.item_id == item_id for reply in self._replies for part in reply.parts)

    def heard(self, now: float) -> dict[str, Heard]:
        """How much of each item, of those whose sound waits or is on the wire."""
        ear, items = self._heard(now), dict[str, tuple[int, int]]()
        for part in (part for reply in self._replies for part in reply.parts):
            heard, received = items.get(part.item_id, (0, 0))
            length = part.end - part.start
            items[part.item_id] = heard + min(max(0, ear - part.start), length), received + length
        per_ms = self._rate / 1000
        return {
            item_id: Heard(int(heard / per_ms), int(received / per_ms))
            for item_id, (heard, received) in items.items()
        }

    def frame(self, now: float) -> list[Notice]:
        """A frame with samples has gone out: `Outlet.open`'s `on_frame`."""
        before = self._history[-1].after if self._history else 0
        self._history.append(_Frame(now, before, self._outlet.sent))
        return self._notices()

    def recall(self) -> bool:
        """Take back all that waits, as if it had not been played. False: the wire has some of it,
        nothing changed."""
        if any(reply.audible for reply in self._replies):
            return False
        self._empty()
        return True

    def clear(self, now: float) -> Cut | None:
        """Fall silent, and drop all that waits with the responses that it is of. What was heard is
        told of the item whose sample was the last on the wire, else of the first that waited; None
        if nothing played. Those behind it were not heard."""
        cut = self._cut(now)
        for reply in self._replies:
            self.drop(reply.response_id)
        self._empty()
        return cut

    def _empty(self) -> None:
        self._outlet.flush()
        self._replies.clear()
        self._parts, self._half, self._end = 0, b"", self._outlet.sent

    def _lengthen(self, reply: _Reply, item_id: str, content_index: int, count: int) -> None:
        """`count` samples were queued behind all others."""
        start, self._end = self._end, self._end + count
        last = reply.parts[-1] if reply.parts else None
        if last is not None and (last.item_id, last.content_index) == (item_id, content_index):
            last.end = self._end
        else:
            reply.parts.append(_Part(item_id, content_index, start, self._end))
            self._parts += 1

    def _notices(self) -> list[Notice]:
        """What has changed now that the wire is at `Outlet.sent`."""
        notices: list[Notice] = []
        sent = self._outlet.sent
        while self._replies:
            reply = self._replies[0]
            if not reply.audible and sent > reply.parts[0].start:
                reply.audible = True
                notices.append(Audible(reply.response_id))
            over = reply.ended or len(self._replies) > 1
            if not over or sent < reply.parts[-1].end:
                break
            self._replies.popleft()
            self._parts -= len(reply.parts)
            if reply.audible:
                notices.append(Silent(reply.response_id))
        return notices

    def _cut(self, now: float) -> Cut | None:
        if not self._replies:
            return None
        reply, sent = self._replies[0], self._outlet.sent
        part = next((part for part in reply.parts if sent <= part.end), reply.parts[-1])
        received = part.end - part.start
        heard = min(max(0, self._heard(now) - part.start), received)
        return Cut(
            reply.response_id,
            part.item_id,
            part.content_index,
            heard * 1000 // self._rate,
            received * 1000 // self._rate,
        )

    def _heard(self, now: float) -> int:
        """The ear's place on the time line."""
        delay = (self._outlet.rtt or 0.0) / 2 + self._client_buffer_s
        at = now - min(delay, MAX_DELAY_S)
        for when, before, after in reversed(self._history):
            if when <= at:
                return min(after, before + round((at - when) * self._rate))
        return 0
