"""The life of one call: from its offer over its states to its end.

Until the first authentic check a call is its offer and its credentials: no task, codec or TLS
object. Paths are `reach.py`, what runs over them is `stream.py`.
"""

import dataclasses
import logging
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from relayctl.wire.address import Address
from relayctl.wire.call_id import CallId
from transceiver import ice
from transceiver.dialects.base import Dialect
from transceiver.events import Event
from transceiver.handshake import examine
from transceiver.lifecycle import End, State, Timeline
from transceiver.line import Line, Watcher
from transceiver.masking import mask
from transceiver.reach import News, Reach
from transceiver.remembered import Remembered
from transceiver.sdp import Offer, continued
from transceiver.sdp_answer import Local, answer
from transceiver.session.items import Item
from transceiver.stream import Stream
from transceiver.surroundings import Surroundings
from transceiver.tally import Tally

MAX_EARLY = 4  # DTLS datagrams kept until a path is proven

log = logging.getLogger(__name__)


class Call:
    """`local` is our side of the first answer, `born` when the offer arrived (the mux's clock),
    `dialect_of` makes the dialect of a data channel from its label, `session` is what the call's
    maker asked its backend for, `subject` on whose behalf, `on_end` is told the end. `resumes`: the
    call that this one carries on, with its items `restored`."""

    def __init__(
        self,
        around: Surroundings,
        call_id: CallId,
        offer: Offer,
        local: Local,
        dialect_of: Callable[[str], Dialect],
        session: Mapping[str, Any],
        born: float,
        on_end: Callable[["Call"], None],
        subject: str = "",
        resumes: CallId | None = None,
        restored: Sequence[Item] = (),
    ) -> None:
        self.id = call_id
        self.subject = subject
        self.resumes = resumes
        self.vips = frozenset(local.candidates)
        self.state = State.NEW
        self.reason: End | None = None
        self.timeline = Timeline()
        self._around = around
        self._mux = around.mux
        self._offer = offer
        self._local = local
        self._dialect_of = dialect_of
        self._session = session
        self._restored = restored
        self._born = born
        self._on_end = on_end
        agent = ice.Agent(
            ice.Credentials(local.ufrag, local.pwd, offer.ufrag, offer.pwd),
            around.random_bytes,
            away_after_s=around.away_after_s,
            consent_s=around.consent_s,
        )
        self._reach = Reach(around.mux, self, agent, self._hear)
        self._early: list[bytes] = []
        self._line: Line | None = None
        self._stream: Stream | None = None
        self._last: dict[str, object] = {}  # how a call that has ended is shown
        self._due = math.inf  # what the wheel knows

    def begin(self) -> str:
        """Listen for the client's checks; returns the SDP answer."""
        text = answer(self._offer, self._local)
        self._mux.attach(self, self._local.ufrag)
        self._claim()
        self._step("answer")
        self._plan(self._born)
        return text

    def restart(self, offer: Offer, ufrag: str, pwd: str) -> str:
        """The answer to a later offer of the client.

        New credentials in it are an ICE restart (RFC 8839 section 4.4.1.1.1), answered with the
        new ones of ours, `ufrag` and `pwd`. With credentials that are in use, also those of a
        restart that the client asks for a second time or takes back, ICE stays as it is.

        Raises `SdpError` if the offer is of another call; then nothing has changed."""
        offer = continued(self._offer, offer)
        used = self._reach.agent.answering(offer.ufrag, offer.pwd)
        chosen = used or ice.Credentials(ufrag, pwd, offer.ufrag, offer.pwd)
        local = dataclasses.replace(
            self._local, ufrag=chosen.ufrag, pwd=chosen.pwd, version=self._local.version + 1
        )
        text = answer(offer, local)
        self._offer, self._local = offer, local
        self._claim()
        if self._stream is not None:
            self._stream.follow(offer)
        now = self._mux.clock()
        if used is None:
            self._reach.restart(chosen, now)
        self._plan(now)
        log.info("call %s %s", self.id.public, "renegotiates" if used else "restarts")
        return text

    @property
    def offer(self) -> Offer:
        """The client's latest."""
        return self._offer

    @property
    def connected_once(self) -> bool:
        return self.timeline.dtls_ms is not None

    def remembered(self) -> Remembered:
        """What it would take to carry the call on elsewhere."""
        if self._line is None:
            return Remembered(self._session, self._restored)
        return self._line.backend.remembered(self._mux.clock())

    @property
    def watchers(self) -> int:
        return 0 if self._line is None else self._line.watchers

    def watch(self, watcher: Watcher) -> Line:
        """Let `watcher` follow the call from now on; what it says goes to `prompt`. The backend
        gets ready, if it has not: whoever watches is no stranger."""
        line = self._open_line()
        line.watch(watcher)
        return line

    def stun(self, payload: bytes, path: Hashable, via: Address, now: float) -> str | None:
        """Take a STUN datagram; None if it was authentic, else the reason to count."""
        drop = self._reach.stun(payload, path, via, now)
        if drop is None:
            if self.state is State.NEW:
                self._enter(State.CONNECTING)
                self._open_line()
            self._plan(now)
        return drop

    def dtls(self, payload: bytes, path: Hashable, via: Address, now: float) -> None:
        """Take a DTLS datagram; before there is a path, keep it."""
        if self.state in (State.NEW, State.CONNECTING):
            stray = examine(payload)
            if stray is not None:
                self._mux.counts.drop(stray)
                return
        if self._stream is None:
            if len(self._early) < MAX_EARLY:
                self._early.append(payload)
            else:
                self._mux.counts.drop("early_dtls")
            return
        if self._stream.receive_dtls(payload, now):
            self._reach.authentic(path, via, now, newest=False)
        self._plan(now)

    def rtp(self, payload: bytes, path: Hashable, via: Address, now: float) -> bool:
        """Take an SRTP or SRTCP packet; whether it was authentic."""
        stream = self._stream
        received = None if stream is None else stream.open_rtp(payload, now)
        if stream is None or received is None:
            return False
        packet, newest, new_source = received
        if new_source is not None:
            self._mux.table.claims(new_source, self, proven=True)
        moved = self._reach.authentic(path, via, now, newest=newest)
        if packet is not None:
            stream.deliver(packet, newest, now)
        if moved or stream.backend.deadline < self._due:
            self._plan(now)
        return True

    def lost(self, path: Hashable, now: float) -> None:
        """Another call has proven this path of ours."""
        self._reach.lost(path, now)
        self._plan(now)

    def timer(self, now: float) -> None:
        if self.state in (State.NEW, State.CONNECTING) and now >= self._born + self._around.setup_s:
            self.end(End.SETUP_TIMEOUT)
            return
        self._reach.timer(now)
        if self._stream is not None:
            self._stream.timer(now)
        self._plan(now)

    def crash(self) -> None:
        self.end(End.INTERNAL_ERROR)

    def finish(self, reason: End) -> None:
        """End the call with what the backend still has to say, if there is somebody to hear it."""
        if self._line is None or self._stream is None or self._stream.media is None:
            self.end(reason)
        else:
            self._line.finish(reason, self._mux.clock())

    def end(self, reason: End) -> None:
        """End the call, in any state; a second end changes nothing."""
        if self.state is State.ENDED:
            return
        self.reason = reason
        self._last = self._shown()
        if self._around.records is not None:
            self._around.records.ended(self)
        self._enter(State.ENDED)
        for part in (self._stream, self._line):
            if part is not None:
                part.close()
        self._mux.detach(self)
        self._mux.counts.ended[reason] += 1
        self._reach.close()
        self._on_end(self)

    def describe(self) -> dict[str, object]:
        """The call as the control API shows it."""
        return {**(self._last or self._shown()), "state": self.state, "reason": self.reason}

    def _shown(self) -> dict[str, object]:
        statistics = {} if self._stream is None else self._stream.statistics()
        return {
            "id": self.id.render(),
            **self._reach.describe(self._local.candidates[0]),
            "version": self._local.version,
            "client_ufrag": self._offer.ufrag,
            "backend": self._around.backend,
            "session": None if self._line is None else self._line.session_id,
            "packets": {way: statistics.get(f"packets_{way}", 0) for way in ("up", "down")},
            "bytes": {way: statistics.get(f"bytes_{way}", 0) for way in ("up", "down")},
            "lost": statistics.get("lost", 0),
            "statistics": statistics,
            "timeline": dataclasses.asdict(self.timeline),
        }

    def _claim(self) -> None:
        """The source that the client will speak as finds this call from an unknown path."""
        if self._offer.audio.ssrc is not None:
            self._mux.table.claims(self._offer.audio.ssrc, self, proven=False)

    def _plan(self, now: float) -> None:
        """Tell the wheel when something is due next. Deadlines that moved away meanwhile cost a
        wake-up for nothing, so it is not told of each packet."""
        if self.state is State.ENDED:
            return
        due = self._reach.agent.next_deadline()
        if self._stream is not None:
            due = min(due, self._stream.deadline(now))
        if self.state in (State.NEW, State.CONNECTING):
            due = min(due, self._born + self._around.setup_s)
        self._due = due
        self._mux.plan(self, due)

    def _hear(self, news: News, now: float) -> None:
        match news:
            case ice.Selected():
                self._select(now)
            case ice.Away() if self._stream is not None and self.state is State.CONNECTED:
                self._enter(State.AWAY)
                self._stream.pause()
            case ice.Back() if self._stream is not None and self.state is State.AWAY:
                self._enter(State.CONNECTED)
                self._stream.resume()
            case ice.Dead():
                self.end(End.CONSENT_LOST)

    def _open_line(self) -> Line:
        """Let the backend get ready while ICE and DTLS go on."""
        if self._line is not None:
            return self._line
        self._line = Line(
            self._around.make_backend,
            self._session,
            self._around.new_id,
            self._note(),
            on_wake=lambda: self._plan(self._mux.clock()),
            on_end=self.end,
            restored=self._restored,
        )
        if self.state is State.ENDED:  # by the backend itself
            self._line.close()
        return self._line

    def _note(self) -> Callable[[Event], None]:
        """What follows all that the client is told."""
        tally, records = Tally(self._mux.counts, self._mux.clock).note, self._around.records
        if records is None:
            return tally

        def note(event: Event) -> None:
            tally(event)
            records.note(self, event)

        return note

    def _select(self, now: float) -> None:
        assert self._line is not None  # the client's check came before its answer to ours
        if self._stream is not None:
            self._mux.counts.moves += 1
            self._log("moves")
            return
        self._step("ice")
        self._stream = Stream(
            self._around,
            self._offer,
            self._local,
            self._line,
            self._dialect_of,
            send=self._reach.send,
            on_step=self._step,
            on_end=self.end,
        )
        self._stream.begin(now)
        early, self._early = self._early, []
        for datagram in early:
            self._stream.receive_dtls(datagram, now)

    def _step(self, phase: str) -> None:
        """A step of the set-up is done; the first time counts."""
        elapsed = self._mux.clock() - self._born
        if not self.timeline.mark(phase, elapsed):
            return
        self._around.observe(phase, elapsed)
        if phase == "dtls":
            self._enter(State.CONNECTED)
            if self._line is not None:
                self._line.connected(self._mux.clock())

    def _enter(self, state: State) -> None:
        self.state = state
        self._log(state)

    def _log(self, what: str) -> None:
        client = self._reach.client
        where = "-" if client is None else mask(client[0])
        why = f" reason={self.reason} reached={self.timeline.reached}" if self.reason else ""
        log.info("call %s %s client=%s%s", self.id.public, what, where, why)
