"""A caller without headphones: what the agent says comes back through loudspeaker and microphone.

Pure. 20 ms at a time at 16 kHz, in packets of Opus both ways.
"""

import numpy as np
import numpy.typing as npt

from transceiver.audio.opus import Decoder, Encoder

RATE = 16_000
FRAME = RATE // 50

Row = npt.NDArray[np.float64]

_SILENCE = np.zeros(FRAME)
_DIRECT_S = 0.003  # after it the first reflection


class Loudspeaker:
    """And a microphone in the same room."""

    def __init__(
        self,
        delay_s: float,
        gain_db: float = -20.0,
        reverberation_s: float = 0.0,
        room_db: float = -66.0,
        seed: int = 1,
    ) -> None:
        """`delay_s` from a packet's arrival here until its sound leaves again, with all that lies
        between; `reverberation_s` until it has fallen by 60 dB, half as strong as the direct sound;
        `room_db` of full scale: the room's own noise."""
        self._chance = np.random.default_rng(seed)
        path = _path(gain_db, reverberation_s, self._chance)
        self._late = round(delay_s * RATE)
        size = len(path) + FRAME - 1  # of what was played that is heard in 20 ms
        self._size = 1 << (size - 1).bit_length()
        self._path = np.fft.rfft(path, self._size)
        self._room = 32768 * 10 ** (room_db / 20)
        self._played = np.zeros(self._size + self._late)
        self._decoder, self._encoder = Decoder(RATE), Encoder(RATE)

    def step(self, packet: bytes | None, voice: Row = _SILENCE) -> bytes:
        """20 ms pass: `packet` arrives and is played, `voice` (16-bit scale) is said into the
        microphone. The packet that leaves."""
        heard = np.frombuffer(self._decoder.decode(packet), np.int16) if packet else _SILENCE
        self._played = np.concatenate([self._played[FRAME:], heard])
        near = np.fft.rfft(self._played[: self._size])
        echo = np.fft.irfft(near * self._path, self._size)[-FRAME:]
        noise = self._chance.normal(0, self._room, FRAME)
        sound = np.clip(np.round(echo + voice + noise), -32768, 32767)
        return self._encoder.encode(sound.astype(np.int16).tobytes())


def _path(gain_db: float, reverberation_s: float, chance: np.random.Generator) -> Row:
    """The impulse response of the room."""
    tail = np.zeros(1)
    if reverberation_s:
        times = np.arange(round(reverberation_s * RATE))
        tail = chance.standard_normal(len(times)) * 10 ** (-3 * times / len(times))
        tail[: round(_DIRECT_S * RATE)] = 0
        tail /= 2 * np.sqrt(np.sum(tail**2))
    tail[0] = 1.0
    return tail * 10 ** (gain_db / 20)
