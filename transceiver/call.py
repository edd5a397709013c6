"""The life of one call, and its paths.

Until the first authentic check a call is its offer and its credentials: no task, codec or TLS
object. What the ICE agent decides is carried out here: paths are owned, sent to and given back, and
the relay that brought the last authentic packet of a path (its `via`) is the one we answer by.
"""

import dataclasses
import logging
from collections.abc import Callable, Hashable

from relayctl.wire.address import Address, render
from relayctl.wire.call_id import CallId
from transceiver import ice
from transceiver.dialects.base import Dialect
from transceiver.lifecycle import End, State, Timeline
from transceiver.masking import mask
from transceiver.sdp import Offer, same_bundle
from transceiver.sdp_answer import Local, answer
from transceiver.stream import Stream
from transceiver.surroundings import Surroundings

MAX_EARLY = 4  # DTLS datagrams kept until a path is proven

log = logging.getLogger(__name__)


class Call:
    """`local` is our side of the first answer, `born` when the offer arrived (the mux's clock),
    `dialect_of` makes the dialect of a data channel from its label, `on_end` is told the end."""

    def __init__(
        self,
        around: Surroundings,
        call_id: CallId,
        offer: Offer,
        local: Local,
        dialect_of: Callable[[str], Dialect],
        born: float,
        on_end: Callable[["Call"], None],
    ) -> None:
        self.id = call_id
        self.vips = frozenset(local.candidates)
        self.state = State.NEW
        self.reason: End | None = None
        self.timeline = Timeline()
        self._around = around
        self._mux = around.mux
        self._offer = offer
        self._local = local
        self._dialect_of = dialect_of
        self._born = born
        self._on_end = on_end
        self._agent = ice.Agent(
            ice.Credentials(local.ufrag, local.pwd, offer.ufrag, offer.pwd),
            around.random_bytes,
            away_after_s=around.away_after_s,
            consent_s=around.consent_s,
        )
        self._via: dict[Hashable, Address] = {}
        self._early: list[bytes] = []
        self._stream: Stream | None = None
        self._path: Hashable = None  # the last one selected, for reports

    def begin(self) -> str:
        """Listen for the client's checks; returns the SDP answer."""
        text = answer(self._offer, self._local)
        self._mux.attach(self, self._local.ufrag)
        if self._offer.audio.ssrc is not None:
            self._mux.table.claims(self._offer.audio.ssrc, self, proven=False)
        self._step("answer")
        return text

    def restart(self, offer: Offer, ufrag: str, pwd: str) -> str:
        """ICE restart: the answer to `offer` with new credentials of ours.

        Raises `SdpError` if the offer is for another bundle."""
        same_bundle(self._offer, offer)
        local = dataclasses.replace(
            self._local, ufrag=ufrag, pwd=pwd, version=self._local.version + 1
        )
        text = answer(offer, local)
        self._offer, self._local = offer, local
        self._agent.restart(ice.Credentials(ufrag, pwd, offer.ufrag, offer.pwd))
        self._mux.attach(self, ufrag)
        self._carry_out(self._mux.clock())
        log.info("call %s restarts", self.id.public)
        return text

    def stun(self, payload: bytes, path: Hashable, via: Address, now: float) -> str | None:
        """Take a STUN datagram; None if it was authentic, else the reason to count."""
        drop = self._agent.receive(payload, path, self._mux.framing.client(path), now)
        if drop is None:
            self._via[path] = via
            if self.state is State.NEW:
                self._enter(State.CONNECTING)
        self._carry_out(now, via)
        return drop

    def dtls(self, payload: bytes, path: Hashable, via: Address, now: float) -> None:
        """Take a DTLS datagram; before there is a path, keep it."""
        if self._stream is None:
            if len(self._early) < MAX_EARLY:
                self._early.append(payload)
            else:
                self._mux.counts.drop("early_dtls")
        elif self._stream.receive_dtls(payload, now):
            self._authentic(path, via, now, newest=False)

    def rtp(self, payload: bytes, path: Hashable, via: Address, now: float) -> bool:
        """Take an SRTP or SRTCP packet; whether it was authentic."""
        stream = self._stream
        received = None if stream is None else stream.open_rtp(payload, now)
        if stream is None or received is None:
            return False
        if received.new_source is not None:
            self._mux.table.claims(received.new_source, self, proven=True)
        self._authentic(path, via, now, received.newest)
        stream.deliver(received)
        return True

    def lost(self, path: Hashable, now: float) -> None:
        """Another call has proven this path of ours."""
        self._agent.forget(path, now)
        self._carry_out(now)

    def timer(self, now: float) -> None:
        if self.state in (State.NEW, State.CONNECTING) and now >= self._born + self._around.setup_s:
            self.end(End.SETUP_TIMEOUT)
            return
        if now >= self._agent.next_deadline():
            self._agent.timer(now)
            self._carry_out(now)
        if self._stream is not None:
            self._stream.timer(now)

    def crash(self) -> None:
        self.end(End.INTERNAL_ERROR)

    def end(self, reason: End) -> None:
        """End the call, in any state; a second end changes nothing."""
        if self.state is State.ENDED:
            return
        self.reason = reason
        self._enter(State.ENDED)
        if self._stream is not None:
            self._stream.close()
        self._mux.detach(self)
        self._mux.counts.ended[reason] += 1
        self._via.clear()
        self._early.clear()
        self._on_end(self)

    def describe(self) -> dict[str, object]:
        """The call as the control API shows it."""
        media = None if self._stream is None else self._stream.media
        framing = self._mux.framing
        vip = None if self._path is None else framing.vip(self._path)
        return {
            "id": self.id.render(),
            "state": self.state,
            "client": None if self._path is None else render(framing.client(self._path)),
            "vip": render(vip or self._local.candidates[0]),
            "rtt_ms": self._agent.rtt_ms,
            "packets": {
                "up": 0 if media is None else media.packets_up,
                "down": 0 if media is None else media.packets_down,
            },
            "bytes": {
                "up": 0 if media is None else media.bytes_up,
                "down": 0 if media is None else media.bytes_down,
            },
            "lost": 0 if media is None else media.lost,
            "timeline": dataclasses.asdict(self.timeline),
            "moves": self._agent.moves,
            "reason": self.reason,
        }

    def _authentic(self, path: Hashable, via: Address, now: float, newest: bool) -> None:
        if self.state is State.ENDED:
            return
        self._via[path] = via
        self._agent.media(path, now, newest)
        if self._agent.events or self._agent.datagrams:
            self._carry_out(now)

    def _carry_out(self, now: float, via: Address | None = None) -> None:
        """Do what the agent decided. `via`: for paths that it did not take in."""
        agent = self._agent
        datagrams, events = agent.datagrams.copy(), agent.events.copy()
        agent.datagrams.clear()
        agent.events.clear()
        for datagram, path in datagrams:
            relay = self._via.get(path, via)
            if relay is not None:
                self._mux.send(path, relay, datagram)
        for event in events:
            if self.state is State.ENDED:
                return
            self._follow(event, now)

    def _follow(self, event: ice.Event, now: float) -> None:
        table = self._mux.table
        match event:
            case ice.Asked(path, transaction_id):
                table.asked(path, transaction_id, self)
            case ice.Settled(path, transaction_id):
                table.settled(path, transaction_id)
            case ice.Proven(path):
                loser = table.proven(path, self)
                if loser is not None:
                    loser.lost(path, now)
            case ice.Selected(path):
                self._select(path, now)
            case ice.Forgotten(path):
                table.forgotten(path, self)
                self._via.pop(path, None)
            case ice.Retired(ufrag):
                table.retire(ufrag)
            case ice.Away():
                self._away()
            case ice.Back():
                self._back()
            case ice.Dead():
                self.end(End.CONSENT_LOST)

    def _select(self, path: Hashable, now: float) -> None:
        self._path = path
        if self._stream is not None:
            self._mux.counts.moves += 1
            self._log("moves")
            return
        self._step("ice")
        self._stream = Stream(
            self._around,
            self._offer,
            self._local,
            self._dialect_of,
            send=self._send,
            on_step=self._step,
            on_end=self.end,
        )
        self._stream.begin(now)
        early, self._early = self._early, []
        for datagram in early:
            self.dtls(datagram, path, self._via[path], now)

    def _send(self, datagram: bytes) -> None:
        path = self._agent.selected
        via = self._via.get(path)
        if path is not None and via is not None:
            self._mux.send(path, via, datagram)

    def _step(self, phase: str) -> None:
        """A step of the set-up is done; the first time counts."""
        elapsed = self._mux.clock() - self._born
        if not self.timeline.mark(phase, elapsed):
            return
        self._around.observe(phase, elapsed)
        if phase == "dtls":
            self._enter(State.CONNECTED)

    def _away(self) -> None:
        if self.state is State.CONNECTED and self._stream is not None:
            self._enter(State.AWAY)
            self._stream.pause()

    def _back(self) -> None:
        if self.state is State.AWAY and self._stream is not None:
            self._enter(State.CONNECTED)
            self._stream.resume()

    def _enter(self, state: State) -> None:
        self.state = state
        self._log(state)

    def _log(self, what: str) -> None:
        client = "-" if self._path is None else mask(self._mux.framing.client(self._path)[0])
        why = f" reason={self.reason} reached={self.timeline.reached}" if self.reason else ""
        log.info("call %s %s client=%s%s", self.id.public, what, client, why)
