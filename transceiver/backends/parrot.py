"""The model that waits for the end of a turn and says it back: conversations without a model.

All of it happens at 16 kHz, the rate of the detector, so nothing is resampled. Speech that goes on
before its answer can be heard takes the answer back and makes the turn longer.
"""

from transceiver.audio.uplink import Sound
from transceiver.backends.answers import HOLD_S, Answers, Spoken
from transceiver.backends.base import Client, Outlet
from transceiver.backends.keeper import Keeper, Terms
from transceiver.backends.listener import Listener
from transceiver.events import Event
from transceiver.lifecycle import End
from transceiver.playback import CLIENT_BUFFER_S
from transceiver.recogniser import Recogniser
from transceiver.remembered import Remembered
from transceiver.session import commands
from transceiver.session.commands import Command
from transceiver.turns.detector import Detector, Started, Turn
from transceiver.turns.guard import Guard
from transceiver.turns.settings import Limits, Settings
from transceiver.turns.turn_audio import TurnAudio
from transceiver.turns.vad import RATE, Stock

LEAD_MS = 250  # of a reply before its speech was noticed, which takes some 100 ms
TAIL_MS = 150  # after its last speech

_BYTES_PER_MS = RATE // 1000 * 2


class Parrot(Listener):
    """One call's backend."""

    def __init__(
        self,
        client: Client,
        vads: Stock,
        terms: Terms | None = None,
        *,
        think_s: float = 0.0,
        client_buffer_s: float = CLIENT_BUFFER_S,
        echo_guard: bool = True,
        limits: Limits | None = None,
        recogniser: Recogniser | None = None,
    ) -> None:
        """`think_s` from the end of a turn to its reply. Raises as `Stock.take`."""
        super().__init__(RATE)
        self._vads, self._vad = vads, vads.take()
        guard = Guard() if echo_guard else None
        self._detector = Detector(self._vad, guard, limits)
        self._audio = TurnAudio()
        self._keeper = Keeper(
            client,
            terms or Terms(),
            self._obey,
            model="parrot",
            responds=True,
            recognises=recogniser is not None,
        )
        self._answers = Answers(
            self._keeper, self._suspects, client.wake, think_s, guard, recogniser
        )
        self._client_buffer_s = client_buffer_s
        self._turn: Spoken | None = None  # the last one
        self._skipped_ms = 0  # of the open turn: what its reply leaves out at the front
        self._ended_ms = 0  # the last turn
        self._heard_at = 0.0

    @property
    def deadline(self) -> float:
        due = min(super().deadline, self._keeper.deadline, self._detector.deadline)
        return min(due, self._answers.deadline)

    def begin(self, outlet: Outlet, now: float) -> None:
        outlet.open(RATE, self._frame)
        self._answers.begin(outlet, self._client_buffer_s)
        self._keeper.begin(now)

    def event(self, event: Event, now: float) -> None:
        self._keeper.event(event, now)
        self._tidy()
        self._end_if_done()

    def timer(self, now: float) -> None:
        super().timer(now)
        for turn in self._detector.timer(now):
            self._take(turn, now)
        self._answers.attend(now)
        if self._keeper.timer(now, self._detector.position_ms):
            self.finish(End.EXPIRED, now)

    def loss(self, fraction: float, now: float) -> None:
        """The call's own encoder hears of it too."""

    def resume(self) -> None:
        if not self._keeper.finishing:
            super().resume()

    def finish(self, reason: End, now: float) -> None:
        """Replies that are made are heard to their end; who speaks is not answered any more."""
        self._keeper.finish(reason, now)
        self._deaf = True
        self._answers.hurry(now)
        self._end_if_done()

    def remembered(self, now: float) -> Remembered:
        return self._keeper.remembered(self._answers.heard(now) if self._keeper.begun else None)

    def close(self) -> None:
        super().close()
        self._answers.close()
        self._turn = None
        self._vads.give_back(self._vad)

    def _hear(self, sound: Sound, now: float) -> None:
        self._heard_at = now
        self._audio.add(sound.samples)
        for turn in self._detector.hear(sound.samples, self._answers.playing, now):
            self._take(turn, now)
        self._answers.attend(now)

    def _suspects(self, now: float) -> bool:
        """Whether somebody may be speaking; who sends nothing any more is not."""
        return now < self._heard_at + HOLD_S and self._detector.suspects

    def _frame(self, now: float) -> None:
        self._answers.frame(now)
        self._tidy()
        self._end_if_done()

    def _take(self, turn: Turn, now: float) -> None:
        if isinstance(turn, Started):
            self._start(turn.start_ms, now)
        else:
            self._stop(turn.end_ms, min(turn.end_ms, turn.speech_end_ms + TAIL_MS), now)
        self._tidy()

    def _start(self, start_ms: int, now: float) -> None:
        session, turn = self._keeper.session, self._turn
        resumes = turn is not None and self._answers.answers(turn) and self._audio.open
        if turn is not None and resumes and self._answers.take_back():
            turn.resumed, self._turn = True, None
            self._keeper.carry_out(session.speech_resumed(start_ms), now)
            return
        self._audio.release()
        self._audio.begin(start_ms)
        self._skipped_ms = max(0, self._detector.position_ms - LEAD_MS - start_ms)
        self._keeper.carry_out(session.speech_started(start_ms), now)

    def _stop(self, end_ms: int, speech_end_ms: int, now: float) -> None:
        session = self._keeper.session
        item_id = session.turn_item_id
        if item_id is not None:
            samples = self._audio.samples(speech_end_ms)[self._skipped_ms * _BYTES_PER_MS :]
            self._turn, self._ended_ms = Spoken(item_id, samples), end_ms
        self._keeper.carry_out(session.speech_stopped(end_ms), now)
        self._transcribe(now)

    def _commit(self, item_id: str, now: float) -> None:
        """The client, or its long silence, ends a turn: all that was heard since the last one."""
        if not self._detector.speaking and not self._manual:
            self._audio.release()
            self._audio.begin(self._ended_ms)
        self._turn = Spoken(item_id, self._audio.samples())
        self._ended_ms = self._detector.position_ms
        self._detector.forget()
        self._listen_anew()
        committed = self._keeper.session.committed(item_id, self._turn.ms)
        self._keeper.carry_out(committed, now)
        self._transcribe(now)

    def _transcribe(self, now: float) -> None:
        """For the client, if it wants that."""
        if self._turn is not None and self._keeper.session.transcribes:
            self._answers.recognise(self._turn, now)

    @property
    def _manual(self) -> bool:
        """The client says when turns end."""
        return self._detector.settings is None

    def _listen_anew(self) -> None:
        self._audio.release()
        if self._manual:
            self._audio.begin(self._detector.position_ms)

    def _tidy(self) -> None:
        """A turn that nothing can resume any more need not be kept."""
        if not (self._answers.pending or self._detector.speaking or self._manual):
            self._audio.release()

    def _end_if_done(self) -> None:
        """The last thing that a method does: all is closed after it."""
        if not self._keeper.finishing:
            return
        if not self._keeper.begun or not (self._answers.playing or self._answers.pending):
            self._keeper.end()

    def _obey(self, command: Command, now: float) -> None:
        match command:
            case commands.Respond():
                self._answers.respond(command, self._turn, now)
            case commands.Abandon(response_id):
                self._answers.abandon(response_id)
            case commands.Clear():
                cut = self._answers.clear(now)
                self._keeper.carry_out(self._keeper.session.cut(cut), now)
            case commands.Commit(item_id):
                self._commit(item_id, now)
            case commands.Forget():
                self._detector.forget()
                self._listen_anew()
            case commands.Detect(turn_detection):
                self._detect(Settings.of(turn_detection))
            case commands.Drop(item_id):
                if self._turn is not None and self._turn.item_id == item_id:
                    self._turn = None
            case commands.Truncate():
                pass  # nobody reads it again

    def _detect(self, settings: Settings | None) -> None:
        was_manual = self._manual
        self._detector.settings = settings
        if was_manual or self._manual:
            self._listen_anew()
