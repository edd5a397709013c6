"""What the test server heard and said, with times."""

import base64
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Entry:
    at: float  # seconds, monotonic
    connection: int  # 1 is the first
    event: dict[str, Any]  # an append has `bytes` (of samples) and `silent` instead of `audio`

    @property
    def type(self) -> str:
        return str(self.event.get("type"))


@dataclass
class Record:
    received: list[Entry] = field(default_factory=list)
    said: list[Entry] = field(default_factory=list)  # without deltas of audio
    connects: list[float] = field(default_factory=list)  # times of handshakes, refused ones too
    headers: list[dict[str, str]] = field(default_factory=list)  # of each handshake, lower case
    paths: list[str] = field(default_factory=list)  # of each handshake, with the query
    audio: dict[int, bytearray] = field(default_factory=dict)  # appended, by connection

    def note(self, connection: int, event: dict[str, Any]) -> None:
        """A client event came."""
        if event.get("type") == "input_audio_buffer.append":
            samples = base64.b64decode(str(event.get("audio")) + "==")  # forgives what is no base64
            self.audio.setdefault(connection, bytearray()).extend(samples)
            event = {k: v for k, v in event.items() if k != "audio"}
            event |= {"bytes": len(samples), "silent": not any(samples)}
        self.received.append(Entry(time.monotonic(), connection, event))

    def events(self, kind: str) -> list[dict[str, Any]]:
        """All received of this type, in order."""
        return [entry.event for entry in self.received if entry.type == kind]
