"""The Realtime session of a backend that has no server: its events, its length, its end."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from transceiver.backends.base import Client
from transceiver.events import Event
from transceiver.lifecycle import End
from transceiver.remembered import Heard, Remembered, as_text
from transceiver.session.commands import Command, Output
from transceiver.session.expiry import Expiry
from transceiver.session.session import Session

FINISH_S = 10.0  # that last words may take

Obey = Callable[[Command, float], None]


@dataclass(frozen=True, slots=True)
class Terms:
    """What all sessions of a process have in common."""

    length_s: float = 3600.0
    warning_s: float = 60.0  # before its end
    unix_time: Callable[[], float] = time.time


class Keeper:
    """Part of a `Backend`. Events of `session` go to the client, its commands to `obey`, in their
    order; `obey` may tell the session of what it did at once."""

    session: Session  # from `begin` on

    def __init__(
        self,
        client: Client,
        terms: Terms,
        obey: Obey,
        *,
        model: str,
        responds: bool,
        recognises: bool = False,
    ) -> None:
        self._client = client
        self._terms = terms
        self._obey = obey
        self._model = model
        self._responds = responds
        self._recognises = recognises
        self._expiry: Expiry | None = None
        self._reason: End | None = None  # why the call is to end
        self._until = math.inf  # and when, whatever still waits
        self.deadline = math.inf  # when `timer` has work; -math.inf = now

    @property
    def begun(self) -> bool:
        return self._expiry is not None

    @property
    def finishing(self) -> bool:
        return self._reason is not None

    def begin(self, now: float) -> None:
        terms = self._terms
        self._expiry = Expiry(now + terms.length_s, terms.warning_s)
        self.session = Session(
            self._client.session,
            model=self._model,
            new_id=self._client.new_id,
            now=now,
            expires_at=round(terms.unix_time() + terms.length_s),
            responds=self._responds,
            recognises=self._recognises,
            restored=self._client.restored,
        )
        self.carry_out(self.session.begin(), now)

    def remembered(self, heard: Mapping[str, Heard] | None = None) -> Remembered:
        """`heard`: of the items whose sound is not heard to the end."""
        if not self.begun:
            return Remembered(self._client.session, self._client.restored)
        heard = heard or {}
        told = (as_text(item, heard.get(item["id"])) for item in self.session.items)
        return Remembered(self.session.settings, [item for item in told if item], bool(heard))

    def event(self, event: Event, now: float) -> None:
        """The client says something."""
        self.carry_out(self.session.event(event, now), now)

    def carry_out(self, outputs: Sequence[Output], now: float) -> None:
        """What the session wants."""
        for output in outputs:
            if isinstance(output, dict):
                self._client.say(output)
            else:
                self._obey(output, now)
        self._look_ahead()

    def timer(self, now: float, heard_ms: int | None = None) -> bool:
        """Do what is due; `heard_ms` is the position of the input. True: the session is over, and
        has to be finished."""
        if now >= self._until:
            self.end()
            return False
        if self._expiry is None:
            return False
        if now >= self.session.deadline:
            self.carry_out(self.session.timer(now, heard_ms), now)
        events, over = self._expiry.timer(now)
        self.carry_out(events, now)
        return over

    def finish(self, reason: End, now: float) -> None:
        """The call is to end: `end` it once nothing waits to be heard. The first reason holds."""
        if self._reason is None:
            self._reason, self._until = reason, now + FINISH_S
            self._look_ahead()

    def end(self) -> None:
        """Nothing waits; the backend is closed when this returns."""
        if self._reason is not None:
            self._until = math.inf
            self._look_ahead()
            self._client.end(self._reason)

    def _look_ahead(self) -> None:
        """`deadline` is asked for at every packet, and moves with the session only."""
        self.deadline = self._until
        if self._expiry is not None:
            self.deadline = min(self._until, self._expiry.deadline, self.session.deadline)
