"""Is the client still there? Sans-IO.

Requests, responses and media count alike: a peer may only answer, or only ask. Counting begins
with the first selected path.
"""

import math

from transceiver.ice.event import Away, Back, Dead, Event


class Liveness:
    """Reports through `events`, the agent's."""

    __slots__ = ("_away_after_s", "_consent_s", "_events", "away", "ended", "heard")

    def __init__(self, away_after_s: float, consent_s: float, events: list[Event]) -> None:
        self.heard = math.inf  # nothing counts as silence yet
        self.away = False
        self.ended = False
        self._away_after_s = away_after_s
        self._consent_s = consent_s
        self._events = events

    @property
    def begun(self) -> bool:
        return self.heard < math.inf

    def begin(self, now: float) -> None:
        if not self.begun:
            self.heard = now

    def hear(self, now: float) -> None:
        """Something authentic came."""
        if self.begun:
            self.heard = now
        if self.away:
            self.away = False
            self._events.append(Back())

    def watch(self, now: float) -> None:
        if now >= self.heard + self._consent_s:
            self.ended = True
            self._events.append(Dead())
        elif now >= self.heard + self._away_after_s and not self.away:
            self.away = True
            self._events.append(Away())

    def deadline(self) -> float:
        if self.ended:
            return math.inf
        return self.heard + (
            self._consent_s if self.away else min(self._away_after_s, self._consent_s)
        )
