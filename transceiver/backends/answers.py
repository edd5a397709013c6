"""The parrot's side of a conversation: an answer from the wish for it to its first sample.

A spoken answer waits: its time to think, while speech is suspected, and for the answer before it.
Until it is on the wire it can be taken back. A written one waits for the recogniser.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from transceiver.backends.base import Outlet
from transceiver.backends.keeper import Keeper
from transceiver.playback import Audible, Playback
from transceiver.recogniser import Recogniser
from transceiver.remembered import Heard
from transceiver.session.commands import Cut, Respond
from transceiver.turns.guard import Guard
from transceiver.turns.vad import RATE

HOLD_S = 0.2  # that a suspicion holds an answer when nothing more is heard

_BYTES_PER_MS = RATE // 1000 * 2


@dataclass(slots=True, eq=False)
class Spoken:
    """A turn that has ended."""

    item_id: str
    samples: bytes  # 16-bit mono at `RATE`
    resumed: bool = False  # no, it has not
    asked: bool = False  # the recogniser, which
    known: bool = False  # has answered:
    words: str | None = None

    @property
    def ms(self) -> int:
        return len(self.samples) // _BYTES_PER_MS


@dataclass(slots=True, eq=False)
class _Reply:
    """An answer of which nothing is on the wire yet."""

    response_id: str
    item_id: str
    turn: Spoken
    due: float
    written: bool
    told: bool = False  # the session knows that it is made
    played: bool = False  # the downlink has it


class Answers:
    """One call's, one at a time. `suspects(now)` tells whether somebody may be speaking."""

    _outlet: Outlet  # from `begin` on
    _playback: Playback

    def __init__(
        self,
        keeper: Keeper,
        suspects: Callable[[float], bool],
        wake: Callable[[], None],
        think_s: float,
        guard: Guard | None,
        recogniser: Recogniser | None,
    ) -> None:
        """`guard` is told what leaves. `wake` is called when `deadline` moves by itself."""
        self._keeper = keeper
        self._suspects = suspects
        self._wake = wake
        self._think_s = think_s
        self._guard = guard
        self._recogniser = recogniser
        self._reply: _Reply | None = None
        self._held_until = 0.0
        self._said = b""  # what the downlink has,
        self._said_from = 0  # where that began, as `Outlet.sent`,
        self._guarded = 0  # and how many bytes of it the guard knows
        self._closed = False

    def begin(self, outlet: Outlet, client_buffer_s: float) -> None:
        """`outlet` is open at `RATE`."""
        self._outlet = outlet
        self._playback = Playback(outlet, RATE, client_buffer_s)

    @property
    def deadline(self) -> float:
        """When `attend` has something to do."""
        reply = self._reply
        if reply is None or reply.played or self._playback.playing:
            return math.inf
        if reply.written and reply.turn.asked:
            return math.inf
        return max(reply.due, self._held_until)

    def heard(self, now: float) -> dict[str, Heard]:
        """How much of the answers that are not heard to the end."""
        return self._playback.heard(now)

    @property
    def playing(self) -> bool:
        return self._playback.playing

    @property
    def pending(self) -> bool:
        """An answer is to come."""
        return self._reply is not None

    def answers(self, turn: Spoken | None) -> bool:
        """Whether that is to this turn."""
        return self._reply is not None and self._reply.turn is turn

    def respond(self, command: Respond, turn: Spoken | None, now: float) -> None:
        """`turn` is the last one."""
        response_id, written = command.response_id, command.modality == "text"
        if command.turn_item_id is None:
            self._write(response_id, command.text or "", now)
        elif turn is None or turn.item_id != command.turn_item_id:
            self._fail(response_id, "no_audio", "the sound of this turn is not kept", now)
        elif written and self._recogniser is None:
            detail = "nothing here recognises speech: ask for output_modalities ['audio']"
            self._fail(response_id, "no_recogniser", detail, now)
        else:
            due = now + self._think_s
            self._reply = _Reply(response_id, command.item_id, turn, due, written)
            self.attend(now)

    def attend(self, now: float) -> None:
        """See to the answer: on with it, or back."""
        reply = self._reply
        if reply is None or now < reply.due:
            return
        if reply.written:
            self._say_in_writing(reply, now)
        elif self._suspects(now):
            self._held_until = now + HOLD_S
            if reply.played:
                self.take_back()
        elif not reply.played and not self._playback.playing:
            self._play(reply, now)

    def hurry(self, now: float) -> None:
        """There is no time to think."""
        if self._reply is not None:
            self._reply.due = now
            self.attend(now)

    def take_back(self) -> bool:
        """Whether nothing of an answer is on the wire; then nothing goes there by itself."""
        if self._playback.playing and not self._playback.recall():
            return False
        if self._reply is not None:
            self._reply.played = False
        return True

    def abandon(self, response_id: str) -> None:
        if self._reply is not None and self._reply.response_id == response_id:
            self._reply = None
        self._playback.drop(response_id)

    def clear(self, now: float) -> Cut | None:
        """Fall silent within a frame."""
        return self._playback.clear(now)

    def frame(self, now: float) -> None:
        """Some of an answer has left."""
        self._tell_guard(now)
        notices = self._playback.frame(now)
        for notice in notices:
            session = self._keeper.session
            if isinstance(notice, Audible):
                self._reply = None
                self._keeper.carry_out(session.audible(notice.response_id), now)
            else:
                self._keeper.carry_out(session.silent(notice.response_id), now)
        if notices:
            self._wake()

    def recognise(self, turn: Spoken, now: float) -> None:
        """Find out what was said in it."""
        if self._recogniser is not None and not turn.asked:
            turn.asked = True
            self._recogniser.recognise(
                turn.samples, lambda words: self._understand(turn, words, now)
            )

    def close(self) -> None:
        self._closed = True
        self._reply, self._said = None, b""

    def _play(self, reply: _Reply, now: float) -> None:
        response_id, turn = reply.response_id, reply.turn
        if not self._playback.play(response_id, reply.item_id, 0, turn.samples, now):
            self._reply = None
            self._fail(response_id, "output_overrun", "too much waits to be heard", now)
            return
        self._playback.end(response_id, now)
        self._said, self._said_from, self._guarded = turn.samples, self._outlet.sent, 0
        reply.played = True
        if not reply.told:
            reply.told = True
            session = self._keeper.session
            self._keeper.carry_out(session.began(response_id), now)
            if turn.words:
                self._keeper.carry_out(session.transcript(response_id, turn.words), now)
            self._keeper.carry_out(session.spoken(response_id, turn.ms), now)

    def _tell_guard(self, now: float) -> None:
        if self._guard is not None:
            end = (self._outlet.sent - self._said_from) * 2
            self._guard.played(self._said[self._guarded : end], now)
            self._guarded = end

    def _understand(self, turn: Spoken, words: str | None, now: float) -> None:
        """The recogniser has answered; `now` is when it was asked."""
        if self._closed or turn.resumed:
            return
        turn.known, turn.words = True, words
        told = self._keeper.session.transcribed(turn.item_id, words, turn.ms / 1000)
        self._keeper.carry_out(told, now)
        if self._reply is not None and self._reply.written and self._reply.turn is turn:
            self._say_in_writing(self._reply, now)
        self._wake()

    def _say_in_writing(self, reply: _Reply, now: float) -> None:
        turn = reply.turn
        if not turn.known:
            self.recognise(turn, now)
            return
        self._reply = None
        if turn.words is None:
            detail = "the speech was not recognised"
            self._fail(reply.response_id, "transcription_failed", detail, now)
        else:
            self._write(reply.response_id, turn.words, now)

    def _write(self, response_id: str, text: str, now: float) -> None:
        session = self._keeper.session
        self._keeper.carry_out(session.began(response_id), now)
        self._keeper.carry_out(session.text(response_id, text), now)
        self._keeper.carry_out(session.spoken(response_id, 0), now)

    def _fail(self, response_id: str, code: str, message: str, now: float) -> None:
        self._keeper.carry_out(self._keeper.session.failed(response_id, code, message), now)
