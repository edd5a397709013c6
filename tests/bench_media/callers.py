"""Drive the generator of calls (`load/`), one process beside one server."""

import json
import select
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench_media import go
from tests.bench_media.rig import CALLER_CPU, CALLER_HOST, DIRECTORY, Rig
from tests.bench_media.subjects import Subject
from tests.figures.measurement import expect
from tests.lab import speech
from tests.lab.ear import Row
from tests.lab.program import ProgramError
from transceiver.audio.opus import Encoder

RATE = 24_000  # Hz, of the codec that makes the recording
SECONDS = 15  # of speech; callers begin at different places of it and again after its end
INTERVAL_MS = 20.0
WARM_S = 0.6  # at the begin of a talk that are not judged
REPORTED_LOSS = 0.012  # in the callers' receiver reports: above the 1 % that turns FEC on
AT_ONCE = 16  # set-ups under way, where these are not what is measured
_PATIENCE_S = 60.0


@dataclass(frozen=True)
class SetUps:
    connected: int
    failed: list[str]
    seconds: float
    setup_ms: list[float]  # sorted
    profile: str  # of SRTP

    def all_there(self, calls: int) -> None:
        """Raises `MeasurementError` unless all are connected."""
        expect(self.connected == calls, f"{calls - self.connected} calls failed: {self.failed[:2]}")


class Callers:
    """A context manager: leaving it hangs up."""

    def __init__(self, rig: Rig, subject: Subject, packets: Path | None = None) -> None:
        """`packets`: what they say, in the format of `recording`, which is the default."""
        argv = [str(go.build("load")), "-url", subject.calls_url, "-token", subject.token]
        argv += ["-vip", subject.address, "-host", CALLER_HOST]
        argv += ["-packets", str(packets or recording())]
        self.program = rig.popen("load", argv, cpu=CALLER_CPU, piped=True)

    def __enter__(self) -> "Callers":
        return self

    def __exit__(self, *_: object) -> None:
        self.program.stop()

    def connect(self, calls: int, *, at_once: int = AT_ONCE, offers_first: bool = False) -> SetUps:
        """Set calls up beside those that there are. Raises `ProgramError`."""
        asked = {"calls": calls, "at_once": at_once, "offers_first": offers_first}
        return SetUps(**self._ask("connect", **asked))

    def talk(
        self, seconds: float, *, warm_s: float = WARM_S, interval_ms: float = INTERVAL_MS
    ) -> dict[str, Any]:
        """All who are connected talk; see `figures` in load/book.go."""
        asked = {"seconds": seconds, "warm_s": warm_s, "interval_ms": interval_ms}
        return self._ask("talk", **asked, loss=REPORTED_LOSS)

    def close(self) -> None:
        """All hang up."""
        self._ask("close")

    def _ask(self, op: str, **more: object) -> dict[str, Any]:
        stdin, stdout = self.program.process.stdin, self.program.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"op": op, **more}).encode() + b"\n")
        stdin.flush()
        ready, _, _ = select.select([stdout], [], [], _PATIENCE_S)
        line = stdout.readline() if ready else b""
        if not line:
            raise ProgramError(f"the callers do not answer {op!r}\n{self.program.tail()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ProgramError(f"the callers say: {answer['error']}")
        return answer


@cache
def recording() -> Path:
    """Speech of `SECONDS`."""
    return write_packets(speech.read(speech.SPOKEN)[: SECONDS * speech.RATE], "speech.opus")


def write_packets(samples: Row, name: str) -> Path:
    """As Opus packets of 20 ms, mono, 32 kb/s, with FEC; a 16-bit length before each."""
    halved = samples.reshape(-1, speech.RATE // RATE).mean(axis=1)  # good enough for load
    pcm = np.round(np.clip(halved, -1, 1) * 32767).astype("<i2")
    encoder = Encoder(RATE, fec=True)
    frame = RATE // 50
    packets = [
        encoder.encode(pcm[at : at + frame].tobytes())
        for at in range(0, len(pcm) - frame + 1, frame)
    ]
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    path = DIRECTORY / name
    path.write_bytes(b"".join(struct.pack("!H", len(packet)) + packet for packet in packets))
    return path
