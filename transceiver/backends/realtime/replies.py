"""The sound of the server's replies: what is played, until when, and what was heard of it. Pure."""

import base64
from collections import deque
from collections.abc import Callable, Iterable

from transceiver.backends.realtime.out import Down, Out, Up, backend_error
from transceiver.backends.realtime.replay import Memory
from transceiver.events import Event
from transceiver.playback import Audible, Notice, Playback
from transceiver.remembered import Heard


class Replies:
    """`mark` gives the id of an event of ours. Nothing is played before `begin`."""

    def __init__(self, memory: Memory, mark: Callable[[], str]) -> None:
        self.overruns = 0  # replies cancelled: too much of them waited to be played
        self.undecodable = 0  # deltas that are no sound
        self._memory = memory
        self._mark = mark
        self._playback: Playback | None = None
        self._audible: str | None = None  # response that the client hears
        self._unwanted: deque[str] = deque(maxlen=100)  # cancelled, and waiting behind another

    def begin(self, playback: Playback) -> None:
        """There is sound from now on."""
        self._playback = playback

    @property
    def playing(self) -> bool:
        return self._playback is not None and self._playback.playing

    def heard(self, now: float) -> dict[str, Heard]:
        """How much of the items that play, or wait to."""
        return {} if self._playback is None else self._playback.heard(now)

    def over(self, response_id: str) -> bool:
        """Whether nothing more is taken of a response."""
        return self._playback is not None and self._playback.stale(response_id)

    def frame(self, now: float) -> list[Out]:
        """A frame with sound went out."""
        if self._playback is None:
            return []
        outs = self._tell(self._playback.frame(now))
        if self._playback.response_id in self._unwanted:
            outs += self.silence(now)
        return outs

    def play(self, event: Event, now: float) -> list[Out]:
        """A `response.output_audio.delta`."""
        response_id, item_id = str(event.get("response_id")), str(event.get("item_id"))
        try:
            samples = base64.b64decode(event["delta"])
        except (KeyError, TypeError, ValueError):
            self.undecodable += 1
            return []
        playback, index = self._playback, event.get("content_index")
        index = index if isinstance(index, int) else 0
        if playback is None or playback.stale(response_id):
            return []
        if playback.play(response_id, item_id, index, samples, now):
            self._memory.sound(item_id, len(samples))
            return []
        return self._overrun(playback, response_id)

    def end(self, response_id: str, now: float) -> list[Out]:
        """No more sound comes of this response; late deltas are dropped."""
        if self._playback is None:
            return []
        ended = self._tell(self._playback.end(response_id, now))
        self._playback.drop(response_id)
        return ended

    def cancelled(self, response_id: str, now: float) -> list[Out]:
        """The server has taken it back: it falls silent, or is not heard when its turn comes."""
        if self.over(response_id):
            return self.end(response_id, now)
        self._unwanted.append(response_id)
        return self.silence(now, of=response_id) + self.end(response_id, now)

    def truncate(self, item_id: object, now: float) -> list[Out]:
        """The client tells the server itself how much it has heard of an item; it falls silent.
        What plays of others plays on."""
        if self._playback is None or not self._playback.holds(item_id):
            return []
        return self.silence(now, told=item_id)

    def clear(self, now: float, active: Iterable[str]) -> list[Out]:
        """The client wants silence, also of the responses that are still being made."""
        outs = self.silence(now)
        if self._playback is not None:
            for response_id in active:
                self._playback.drop(response_id)
        return outs

    def silence(self, now: float, of: str | None = None, told: object = None) -> list[Out]:
        """Stop the sound, if there is any (`of` this response), and say how much was heard, unless
        the server is `told` that of this item."""
        playback = self._playback
        if playback is None or (of is not None and playback.response_id != of):
            return []
        cut = playback.clear(now)
        if cut is None:
            return []
        outs: list[Out] = []
        if cut.response_id == self._audible:
            outs.append(_buffer("cleared", cut.response_id))
        self._audible = None
        self._memory.heard(cut.item_id, cut.heard_ms)
        if cut.heard_ms > 0 and cut.item_id != told:
            truncate = {
                "type": "conversation.item.truncate",
                "event_id": self._mark(),
                "item_id": cut.item_id,
                "content_index": cut.content_index,
                "audio_end_ms": cut.heard_ms,
            }
            outs.append(Up(truncate, ours=True))
        return outs

    def _overrun(self, playback: Playback, response_id: str) -> list[Out]:
        """What waits is played; the rest of the reply is not wanted."""
        self.overruns += 1
        playback.drop(response_id)
        cancel = {"type": "response.cancel", "response_id": response_id}
        detail = "the model is too far ahead of its voice; the reply ends early"
        return [
            Up({**cancel, "event_id": self._mark()}, ours=True),
            Down(backend_error("backend_overrun", detail)),
        ]

    def _tell(self, notices: Iterable[Notice]) -> list[Out]:
        outs: list[Out] = []
        for notice in notices:
            is_audible = isinstance(notice, Audible)
            self._audible = notice.response_id if is_audible else None
            outs.append(_buffer("started" if is_audible else "stopped", notice.response_id))
        return outs


def _buffer(what: str, response_id: str) -> Down:
    return Down({"type": f"output_audio_buffer.{what}", "response_id": response_id})
