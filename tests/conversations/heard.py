"""What a client of a conversation heard: events and sound, each with its time. Pure."""

from dataclasses import dataclass, field

import numpy as np

from transceiver.audio.opus import Decoder
from transceiver.events import Event

AUDIBLE = 0.01  # peak of 20 ms, of full scale: -40 dB; a coder's tail behind speech is below

_RATE = 16_000  # enough to tell sound from none


@dataclass
class Heard:
    """`events` without their times, which are in `event_times`; packets are 20 ms."""

    events: list[Event] = field(default_factory=list)
    event_times: list[float] = field(default_factory=list)
    packet_times: list[float] = field(default_factory=list)
    loud: list[bool] = field(default_factory=list)
    last_loud: float = -1.0
    _decoder: Decoder = field(default_factory=lambda: Decoder(_RATE))

    def event(self, event: Event, at: float) -> None:
        self.events.append(event)
        self.event_times.append(at)

    def packet(self, payload: bytes, at: float) -> None:
        """In the order of arrival."""
        samples = np.frombuffer(self._decoder.decode(payload), np.int16)
        loud = bool(len(samples)) and int(np.abs(samples.astype(np.int32)).max()) > AUDIBLE * 32768
        self.packet_times.append(at)
        self.loud.append(loud)
        if loud:
            self.last_loud = at

    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]

    def loud_between(self, start: float, end: float) -> int:
        """Packets with sound that came after `start`, until `end`."""
        times = zip(self.packet_times, self.loud, strict=True)
        return sum(loud for at, loud in times if start < at <= end)
