"""The media socket of this process: all calls share one UDP socket and one timer wheel.

A shell: `framing.py` reads the inner leg, `demux.py` says whose a datagram is, the calls do the
rest. Hostile datagrams are counted by reason, never logged and never answered here.
"""

import asyncio
import enum
import logging
import math
import socket
from collections.abc import Callable, Hashable
from typing import Protocol

from relayctl.wire.address import Address
from relayctl.wire.packet_class import (
    BINDING_ERROR,
    BINDING_REQUEST,
    BINDING_SUCCESS,
    PacketClass,
    classify,
    ssrc_of,
    stun_type,
)
from relayctl.wire.stun import StunError, parse_binding_request
from transceiver.counts import Counts
from transceiver.demux import Demux
from transceiver.framing import Framing, FramingError
from transceiver.ice import Drop
from transceiver.media_socket import STAMP_SPACE, waited
from transceiver.wheel import Wheel

ROUNDING_S = 0.001  # timers of the loop may ring so much too early
BATCH_S = 0.004  # of reading before answers leave and other work gets its turn

_RTP = PacketClass.RTP  # what nearly all packets are: no look-up in the class
_MAX_DATAGRAM = 2048  # bytes; longer ones are cut, and then fail their authentication
_TRANSACTION = slice(8, 20)  # of a STUN message, RFC 8489 section 5

log = logging.getLogger(__name__)


class Reject(enum.StrEnum):
    """Why a datagram was dropped here; framing and ICE have reasons of their own."""

    WRONG_VIP = "wrong_vip"  # the relay's VIP is not among those of the call
    UNKNOWN_UFRAG = "unknown_ufrag"
    UNKNOWN_PATH = "unknown_path"  # nobody proved it
    NOT_AUTHENTIC = "not_authentic"  # SRTP
    UNKNOWN_CLASS = "unknown_class"  # RFC 7983
    SEND_FAILED = "send_failed"  # ours
    INTERNAL_ERROR = "internal_error"


class Peer(Protocol):
    """A call, as the mux sees it. `via` is the relay that brought a datagram."""

    vips: frozenset[Address]

    def stun(self, payload: bytes, path: Hashable, via: Address, now: float) -> str | None:
        """Take a STUN datagram: None if it was authentic, else why it was not."""

    def dtls(self, payload: bytes, path: Hashable, via: Address, now: float) -> None:
        """Take a DTLS datagram of an own path, or of one that is about to be proven."""

    def rtp(self, payload: bytes, path: Hashable, via: Address, now: float) -> bool:
        """Take an SRTP or SRTCP packet; whether it was authentic."""

    def lost(self, path: Hashable, now: float) -> None:
        """Another call has proven this path."""

    def timer(self, now: float) -> None:
        """Do what is due; `Mux.plan` the next time."""

    def crash(self) -> None:
        """End after a fault of ours."""


class Mux:
    """`clock` gives the seconds that all calls count in."""

    def __init__(
        self,
        media: socket.socket,
        framing: Framing,
        counts: Counts,
        clock: Callable[[], float],
    ) -> None:
        self.table: Demux[Peer] = Demux()
        self.framing = framing
        self.counts = counts
        self.clock = clock
        self._socket = media
        self._wheel: Wheel[Peer] = Wheel()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tick: asyncio.TimerHandle | None = None
        self._armed = math.inf  # when the wheel turns next
        self._serving: Peer | None = None
        self._reading = False
        self._outbox: list[tuple[bytes, Address]] = []

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        loop.add_reader(self._socket.fileno(), self._readable)
        self._turn()

    def stop(self) -> None:
        """Stop reading and the wheel; closes the socket."""
        if self._tick is not None:
            self._tick.cancel()
        if self._loop is not None:
            self._loop.remove_reader(self._socket.fileno())
        self._loop = self._tick = None
        self._socket.close()

    def attach(self, call: Peer, ufrag: str) -> None:
        """Binding requests to `ufrag` are for `call`."""
        self.table.add(ufrag, call)

    def plan(self, call: Peer, when: float) -> None:
        """Call `call.timer` at `when`, instead of when it was planned before."""
        self._wheel.plan(call, when)
        if self._wheel.next < self._armed:
            self._arm()

    def detach(self, call: Peer) -> None:
        """Forget `call`: no packet and no turn of the wheel is for it any more."""
        self._wheel.cancel(call)
        self.table.remove(call)

    def send(self, path: Hashable, via: Address, payload: bytes) -> None:
        """Send to the client of `path` by the relay `via`, now or at the end of a reading. What
        the kernel refuses is counted."""
        self._outbox.append((self.framing.seal(path, payload), via))
        if not self._reading:
            self._post()

    def receive(self, datagram: bytes, source: Address, now: float) -> None:
        """Take one datagram of the socket."""
        try:
            path, payload = self.framing.open(datagram, source)
        except FramingError as error:
            self.counts.drop(error.reason)
            return
        kind = classify(payload)
        if kind is _RTP:
            self._rtp(payload, path, source, now)
        elif kind is PacketClass.STUN:
            self._stun(payload, path, source, now)
        elif kind is PacketClass.DTLS:
            self._dtls(payload, path, source, now)
        else:
            self.counts.drop(Reject.UNKNOWN_CLASS)

    def tick(self, now: float) -> None:
        """One turn of the wheel: the calls that have something due do it."""
        for call in self._wheel.turn(now):
            self._serving = call
            try:
                call.timer(now)
            except Exception:
                self._fault()

    def _stun(self, payload: bytes, path: Hashable, via: Address, now: float) -> None:
        kind = stun_type(payload)
        if kind == BINDING_REQUEST:
            call, missing = self._asked_for(payload)
        elif kind in (BINDING_SUCCESS, BINDING_ERROR):
            call = self.table.response(path, payload[_TRANSACTION])
            missing = Drop.UNKNOWN_TRANSACTION
        else:
            call, missing = None, Drop.NOT_A_CHECK
        if call is None:
            self.counts.drop(missing)
        elif not self._has_vip(call, path):
            self.counts.drop(Reject.WRONG_VIP)
        else:
            self._serving = call
            drop = call.stun(payload, path, via, now)
            if drop is not None:
                self.counts.drop(drop)

    def _asked_for(self, payload: bytes) -> tuple[Peer | None, str]:
        """The call whose ufrag a Binding request carries, or None and why."""
        try:
            request = parse_binding_request(payload)
        except StunError as error:
            return None, error.reason
        return self.table.request(request.local_ufrag), Reject.UNKNOWN_UFRAG

    def _dtls(self, payload: bytes, path: Hashable, via: Address, now: float) -> None:
        call = self.table.owner(path) or self.table.suitor(path)
        if call is None:
            self.counts.drop(Reject.UNKNOWN_PATH)
            return
        self._serving = call
        call.dtls(payload, path, via, now)

    def _rtp(self, payload: bytes, path: Hashable, via: Address, now: float) -> None:
        owner = self.table.owner(path)
        if owner is not None:
            self._serving = owner
            if not owner.rtp(payload, path, via, now):
                self.counts.drop(Reject.NOT_AUTHENTIC)
            return
        ssrc = ssrc_of(payload)
        for call in () if ssrc is None else self.table.candidates(ssrc):
            self._serving = call
            if self._has_vip(call, path) and call.rtp(payload, path, via, now):
                return
        self.counts.drop(Reject.UNKNOWN_PATH)

    def _has_vip(self, call: Peer, path: Hashable) -> bool:
        vip = self.framing.vip(path)
        return vip is None or vip in call.vips

    def _readable(self) -> None:
        """Read for a while, then send the answers: whoever gets several in a row is woken once,
        and the kernel's way out stays warm. A datagram that comes alone is answered at once."""
        self._reading = True
        try:
            self._read()
        finally:
            self._reading = False
            self._post()

    def _post(self) -> None:
        outbox, self._outbox = self._outbox, []
        for datagram, via in outbox:
            try:
                self._socket.sendto(datagram, via)
            except OSError:
                self.counts.drop(Reject.SEND_FAILED)

    def _read(self) -> None:
        """How long the first datagram has waited stands for all."""
        began = now = self.clock()
        try:
            datagram, stamp, _, source = self._socket.recvmsg(_MAX_DATAGRAM, STAMP_SPACE)
            self.counts.lateness.add(waited(stamp), now)
            while True:
                self._serving = None
                try:
                    self.receive(datagram, source[:2], now)
                except Exception:
                    self._fault()
                now = self.clock()
                if now - began >= BATCH_S:
                    return
                datagram, source = self._socket.recvfrom(_MAX_DATAGRAM)
        except OSError:  # nothing left, or an ICMP error of some earlier send
            return

    def _turn(self) -> None:
        self._armed = 0.0  # not for what is planned meanwhile
        self.tick(self.clock())
        self._arm()

    def _arm(self) -> None:
        """Let the wheel turn when something is due, and sleep until then."""
        if self._loop is None:
            return
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        self._armed = self._wheel.next
        if self._armed < math.inf:
            delay = self._armed - self.clock() + ROUNDING_S
            self._tick = self._loop.call_later(max(delay, 0.0), self._turn)

    def _fault(self) -> None:
        """A fault of ours ends the call that it happened in, and no other."""
        log.exception("fault in the media path")
        self.counts.drop(Reject.INTERNAL_ERROR)
        if self._serving is not None:
            self._serving.crash()
