"""One call's model behind a WebSocket: the call's sound and events up, the server's down.

All of it happens on the event loop, inline where a packet or a message comes in.
"""

import asyncio
import logging
import math
import ssl
from collections.abc import Callable, Iterable

from transceiver.audio.uplink import Sound
from transceiver.backends.base import Client, Outlet
from transceiver.backends.keeper import FINISH_S, Terms
from transceiver.backends.listener import Listener
from transceiver.backends.realtime.backlog import Backlog
from transceiver.backends.realtime.complaints import Complaints
from transceiver.backends.realtime.configuration import RATE
from transceiver.backends.realtime.faults import Fault
from transceiver.backends.realtime.out import Out, Up, backend_error
from transceiver.backends.realtime.table import Table
from transceiver.backends.realtime.target import Target
from transceiver.backends.realtime.upstream import Upstream
from transceiver.events import Event
from transceiver.lifecycle import End
from transceiver.playback import CLIENT_BUFFER_S, Playback
from transceiver.remembered import Remembered
from transceiver.session.expiry import Expiry

_TOLD = {  # the client; it has no part in our key
    Fault.UNAVAILABLE: (Fault.UNAVAILABLE, "the model cannot be reached; it is tried again"),
    Fault.OVERLOADED: (Fault.OVERLOADED, "the model has too much to do; it is tried again"),
    Fault.UNAUTHORIZED: (Fault.UNAVAILABLE, "the model cannot be reached; it is tried again"),
}

log = logging.getLogger(__name__)


class Realtime(Listener):
    """Connects when it is made, within a running loop. `clock` is the calls' own; `random()` gives
    0..1; `tls` is shared by all calls, since it takes long to make."""

    def __init__(
        self,
        client: Client,
        target: Target,
        terms: Terms | None = None,
        *,
        clock: Callable[[], float],
        random: Callable[[], float],
        tls: ssl.SSLContext | None = None,
        client_buffer_s: float = CLIENT_BUFFER_S,
    ) -> None:
        super().__init__(RATE)
        self._client = client
        self._target = target
        self._terms = terms or Terms()
        self._clock = clock
        self._client_buffer_s = client_buffer_s
        self._born = clock()
        self._table = Table(client.session, target.model, client.new_id, client.restored)
        self._backlog = Backlog()
        self._expiry: Expiry | None = None
        self._impatience: asyncio.TimerHandle | None = None  # with a server that does not answer
        self._faults: set[Fault] = set()  # that the client was told of in this outage
        self._lost_at: float | None = None  # when it began
        self._complaints = Complaints()
        self._appended = 0
        self._reconnects = 0
        self._connect_ms: int | None = None
        self._reason: End | None = None  # why the call is to end,
        self._until = math.inf  # and when
        self._upstream = Upstream(
            target,
            client.session.get("model"),
            self._backlog,
            self,
            clock=clock,
            random=random,
            tls=tls,
        )

    @property
    def deadline(self) -> float:
        expires = math.inf if self._expiry is None else self._expiry.deadline
        return min(super().deadline, expires, self._until)

    def begin(self, outlet: Outlet, now: float) -> None:
        outlet.open(RATE, self._frame)
        self._table.replies.begin(Playback(outlet, RATE, self._client_buffer_s))
        self._expiry = Expiry(now + self._terms.length_s, self._terms.warning_s)
        self._upstream.begin()

    def event(self, event: Event, now: float) -> None:
        self._carry(self._table.client(event, now))

    def timer(self, now: float) -> None:
        super().timer(now)
        if self._expiry is not None:
            events, over = self._expiry.timer(now)
            for event in events:
                self._client.say(event)
            if over:
                self.finish(End.EXPIRED, now)
        if now >= self._until and self._reason is not None:
            self._until = math.inf
            self._client.end(self._reason)

    def loss(self, fraction: float, now: float) -> None:
        """The call's encoder hears of it too."""

    def resume(self) -> None:
        if self._reason is None:
            super().resume()

    def finish(self, reason: End, now: float) -> None:
        if self._reason is None:
            self._reason, self._until = reason, now + FINISH_S
            self._deaf = True
            self._settle(now)

    def close(self) -> None:
        super().close()
        self._upstream.close()
        self._be_patient()

    def remembered(self, now: float) -> Remembered:
        return self._table.remembered(now)

    def statistics(self) -> dict[str, int]:
        connected = {} if self._connect_ms is None else {"connect_ms": self._connect_ms}
        return {
            **super().statistics(),
            **connected,
            "appended": self._appended,
            "dropped": self._backlog.dropped,
            "overruns": self._table.replies.overruns,
            "reconnects": self._reconnects,
            "refused": self._table.refused,
            "garbage": self._upstream.garbage + self._table.replies.undecodable,
        }

    def message(self, event: Event) -> None:
        """For the upstream, see `Owner`."""
        if complaint := self._complaints.about(event):
            log.warning("%s: %s", self._target.endpoint, complaint)
        now, was_ready = self._clock(), self._table.ready
        self._carry(self._table.server(event, now), first=not was_ready)
        if not was_ready:
            self._configure(now)
        self._settle(now)

    def sent(self, event: Event) -> None:
        """For the upstream, see `Owner`."""
        self._table.sent(event)

    def lost(self, fault: Fault, detail: str) -> None:
        """For the upstream, see `Owner`."""
        now = self._clock()
        self._be_patient()
        self._backlog.stop()
        self._carry(self._table.lost(now))
        self._lost_at = now if self._lost_at is None else self._lost_at
        code, message = _TOLD[fault]
        if fault not in self._faults:
            log.warning("%s at %s: %s", fault, self._target.endpoint, detail)
            if not any(_TOLD[told][0] is code for told in self._faults):
                self._client.say(backend_error(code, message))
            self._faults.add(fault)
        self._settle(now)

    def hung_up(self) -> None:
        """For the upstream, see `Owner`."""
        now = self._clock()
        self._be_patient()
        self._backlog.stop()
        self._carry(self._table.lost(now))
        self.finish(End.BACKEND_ENDED, now)

    def crashed(self) -> None:
        """For the upstream, see `Owner`."""
        self._client.end(End.INTERNAL_ERROR)

    def _hear(self, sound: Sound, now: float) -> None:
        self._appended += 1
        self._backlog.add_sound(sound.samples)
        self._upstream.wake()

    def _frame(self, now: float) -> None:
        """A frame with sound went out."""
        self._carry(self._table.replies.frame(now))
        self._settle(now)

    def _carry(self, outs: Iterable[Out], first: bool = False) -> None:
        for out in outs:
            if not isinstance(out, Up):
                self._client.say(out.event)
            elif first:
                self._upstream.send(out.event)
            elif self._backlog.add_event(out.event, out.ours):
                self._upstream.wake()
            else:
                detail = "the model cannot be reached, and too many events wait for it"
                event_id = out.event.get("event_id")
                self._client.say(backend_error("backend_unavailable", detail, event_id))

    def _configure(self, now: float) -> None:
        """The server has said something about our session."""
        if self._table.ready:
            self._be_patient()
            self._faults.clear()
            if self._lost_at is not None:
                log.info("%s: back after %.1f s", self._target.endpoint, now - self._lost_at)
                self._lost_at = None
            if self._connect_ms is None:
                self._connect_ms = round((now - self._born) * 1000)
            else:
                self._reconnects += 1
                detail = "the model is back, and was told what was said"
                self._client.say(backend_error("backend_reconnected", detail))
            self._backlog.start(now)
            self._upstream.wake()
        elif self._impatience is None:
            loop = asyncio.get_running_loop()
            self._impatience = loop.call_later(self._target.connect_s, self._unanswered)

    def _unanswered(self) -> None:
        """The server leaves our configuration without an answer."""
        self._carry(self._table.unanswered(), first=True)
        if self._table.ready:
            self._configure(self._clock())

    def _be_patient(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None

    def _settle(self, now: float) -> None:
        """End the call, if it is to end and nothing more is to be heard. Not in here: this may be
        in the middle of a frame."""
        if self._reason is not None and not self._table.busy:
            self._until = min(self._until, now)
            self._client.wake()
