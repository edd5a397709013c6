"""A parrot and who talks to it: real speech and the real detector, on a clock that tests turn."""

from collections.abc import Mapping
from functools import cache
from itertools import cycle
from typing import Any

import numpy as np

from tests.conversations.mouth import Mouth, phrase
from tests.unit.transceiver.backends.around import Peer, Wire
from transceiver.audio.opus import Encoder
from transceiver.backends.keeper import Terms
from transceiver.backends.parrot import Parrot
from transceiver.rtp import FRAME, Packet
from transceiver.turns.vad import RATE, Stock, Vad, make

PACKET_S = 0.02
VAD = {"type": "server_vad"}
STARTED, STOPPED = "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"
HEARD, SILENT = "output_audio_buffer.started", "output_audio_buffer.stopped"
CLEARED, DONE = "output_audio_buffer.cleared", "response.done"
TRANSCRIBE = {"audio": {"input": {"transcription": {"model": "any"}}}}
TRANSCRIBED = "conversation.item.input_audio_transcription.completed"
COMMITTED = "input_audio_buffer.committed"
ROOM_S = 1.0  # of quiet, again and again


class OneVad(Stock):
    """The same one for call after call: to make one takes 0.1 s."""

    def take(self) -> Vad:
        vad = _vad()
        vad.reset()
        return vad


@cache
def _vad() -> Vad:
    return make("silero")


@cache
def _packets(number: int, seconds: float | None) -> list[bytes]:
    mouth, packets = Mouth(), []
    mouth.say(phrase(number, seconds))
    while mouth.speaking:
        packets.append(mouth.packet())
    return packets


@cache
def _room() -> list[bytes]:
    mouth = Mouth()
    return [mouth.packet() for _ in range(round(ROOM_S / PACKET_S))]


class Talk:
    """Packets leave every 20 ms and arrive at once; `muted` sends none."""

    def __init__(self, session: Mapping[str, Any] | None = None, **parrot: Any) -> None:
        self.peer, self.wire = Peer(session), Wire()
        terms = parrot.pop("terms", Terms(unix_time=lambda: 1e9))
        self.parrot = Parrot(self.peer, OneVad("silero"), terms, **parrot)
        self.parrot.begin(self.wire, self.wire.now)
        self.speech: list[bytes] = []  # packets that come next
        self.muted = False
        self._room = cycle(_room())
        self._packets = 0

    @property
    def now(self) -> float:
        return self.wire.now

    @property
    def types(self) -> list[str]:
        return self.peer.types

    def say(self, number: int = 0, seconds: float | None = None) -> None:
        """To the end of the phrase."""
        self.begin(number, seconds)
        while self.speech:
            self.packet()

    def hear(self, samples: np.ndarray[Any, np.dtype[np.int16]]) -> None:
        """Other sound, at 16 kHz, to its end."""
        encoder, size = Encoder(RATE), RATE // 50
        pieces = samples[: len(samples) // size * size].reshape(-1, size)
        self.speech += [encoder.encode(piece.tobytes()) for piece in pieces]
        while self.speech:
            self.packet()

    def begin(self, number: int = 0, seconds: float | None = None) -> None:
        """Time passes elsewhere."""
        self.speech += _packets(number, seconds)

    def run(self, seconds: float, until: str | None = None) -> None:
        """Let time pass, or until the next event of a kind."""
        end, told = self.now + seconds, len(self.peer.said)
        while self.now < end - 1e-9 and not self.peer.ended:
            if until is not None and until in self.types[told:]:
                return
            self.packet()
        assert until is None, f"no {until}"

    def packet(self) -> None:
        payload = self.speech.pop(0) if self.speech else next(self._room)
        number = self._packets
        self._packets += 1
        if not self.muted:
            packet = Packet(111, number & 0xFFFF, number * FRAME & 0xFFFFFFFF, 1, payload)
            self.parrot.receive(packet, True, self.now)
        end = self.now + PACKET_S
        rounds = 0
        while not self.peer.ended and (due := max(self.now, self.parrot.deadline)) <= end:
            self.wire.run(due)
            self.parrot.timer(due)
            rounds += 1
            assert rounds < 50, "it is due again and again"
        if not self.peer.ended:
            self.wire.run(end)

    def tell(self, kind: str, **fields: Any) -> None:
        self.parrot.event({"type": kind, **fields}, self.now)

    def update(self, turn_detection: Mapping[str, Any] | None, **session: Any) -> None:
        heard = {"input": {"turn_detection": turn_detection}}
        self.tell("session.update", session={"type": "realtime", "audio": heard, **session})

    def last(self, kind: str) -> dict[str, Any]:
        """The last event of a kind."""
        return next(event for event in reversed(self.peer.said) if event["type"] == kind)

    def heard(self, since: float = 0.0) -> np.ndarray[Any, np.dtype[np.int16]]:
        """All that was said back."""
        frames = [samples or b"" for at, samples in self.wire.frames if at >= since]
        return np.frombuffer(b"".join(frames), np.int16)

    @property
    def last_sound(self) -> float:
        """When the last packet left that one can hear."""
        return next(at for at, samples in reversed(self.wire.frames) if samples and any(samples))


def replied(**parrot: Any) -> Talk:
    """A turn was said, and its reply is heard since half a second."""
    talk = Talk(**parrot)
    talk.run(0.4)
    talk.say(0)
    talk.run(2.0, until=HEARD)
    talk.run(0.5)
    return talk


class Ears:
    """A recogniser that answers when told."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, Any]] = []

    def recognise(self, samples: bytes, done: Any) -> None:
        self.asked.append((samples, done))

    def answer(self, words: str | None) -> None:
        self.asked.pop(0)[1](words)
