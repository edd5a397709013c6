"""What runs over the path of a call once there is one: DTLS, then audio and data channels.

It knows no path: `send` takes a datagram to wherever the call sends to now.
"""

import logging
import math
from collections.abc import Callable

from relayctl.wire.packet_class import is_rtcp, ssrc_of
from transceiver.allowance import Allowance
from transceiver.channels import Channels
from transceiver.dialects.base import Dialect
from transceiver.dtls import DtlsTransport, Failure
from transceiver.lifecycle import End
from transceiver.line import Line
from transceiver.media import Media, Received
from transceiver.rtp import Packet
from transceiver.sdp import Offer, Setup
from transceiver.sdp_answer import Local, setup_of
from transceiver.srtp import Srtp
from transceiver.surroundings import Surroundings

PACKETS_PER_S = 500  # of audio that a backend has to hear; with 2.5 ms in each there are 400
BURST = 1000

log = logging.getLogger(__name__)


class Stream:
    """`on_step` is told `dtls`, `channel` and `first_audio`; `on_end` why all is over."""

    def __init__(
        self,
        around: Surroundings,
        offer: Offer,
        local: Local,
        line: Line,
        dialect_of: Callable[[str], Dialect],
        send: Callable[[bytes], None],
        on_step: Callable[[str], None],
        on_end: Callable[[End], None],
    ) -> None:
        self._around = around
        self._offer = offer
        self._local = local
        self._line = line
        self.backend = line.backend
        self._dialect_of = dialect_of
        self._send = send
        self._on_step = on_step
        self._on_end = on_end
        self._dtls = DtlsTransport(
            send,
            around.identity,
            server=setup_of(offer) is Setup.PASSIVE,
            fingerprints=offer.fingerprints,
            on_connected=self._connected,
            on_closed=self._closed,
        )
        self._allowance = Allowance(PACKETS_PER_S, BURST)
        self._srtp: Srtp | None = None  # while audio can flow
        self._sounds = False  # a packet of audio went out
        self._channels: Channels | None = None
        self.media: Media | None = None

    def begin(self, now: float) -> None:
        """Be ready for the client's hello, or say ours."""
        self._dtls.begin(now)

    def follow(self, offer: Offer) -> None:
        """A later offer of the same call: it may put us on hold or off, or bring a data channel.
        One that it leaves out stays, unused: the next offer may have it again."""
        self._offer = offer
        if self.media is not None:
            self.media.sends = offer.audio.direction.mirrored.sends
            self._open_channels()

    def receive_dtls(self, datagram: bytes, now: float) -> bool:
        """Take a DTLS datagram; whether a record in it was authentic."""
        return self._dtls.receive(datagram, now)

    def open_rtp(self, packet: bytes, now: float) -> Received | None:
        """Authenticate an SRTP or SRTCP packet; None if it is not of this call. `deliver` it
        once it is known where answers go."""
        srtp, media = self._srtp, self.media
        if srtp is None or media is None:
            return None
        ssrc = ssrc_of(packet)
        if ssrc is not None:
            plain = srtp.unprotect(packet) if media.admits(ssrc) else None
            return None if plain is None else media.count(plain, now)
        plain = srtp.unprotect_rtcp(packet) if is_rtcp(packet) else None
        if plain is None:
            return None
        media.receive_rtcp(plain, now)
        return None, True, None

    def deliver(self, packet: Packet, newest: bool, now: float) -> None:
        """Let the backend have an authentic packet, unless they come faster than any audio."""
        if self.media is None:
            return
        if self._allowance.take(now):
            self.media.deliver(packet, newest, now)
        else:
            self._around.mux.counts.drop("too_fast")

    def timer(self, now: float) -> None:
        self._dtls.timer(now)
        if self.media is not None:
            self.media.timer(now)
        self._line.timer(now)

    def deadline(self, now: float) -> float:
        """When `timer` has work next; math.inf = never."""
        media = math.inf if self.media is None else self.media.deadline
        return min(self._dtls.deadline(now), self._line.deadline, media)

    def pause(self) -> None:
        if self.media is not None:
            self.media.pause()

    def resume(self) -> None:
        if self.media is not None:
            self.media.resume()

    def statistics(self) -> dict[str, object]:
        """Of the audio, if there is any; a fault of the backend costs them, and nothing else."""
        try:
            return {} if self.media is None else self.media.statistics()
        except Exception:
            log.exception("fault in a backend")
            return {}

    def close(self) -> None:
        """Say goodbye and stop everything; may be called from inside any callback."""
        if self._channels is not None:
            self._channels.end()
        try:
            if self.media is not None:
                self.media.close()
        except Exception:
            log.exception("fault in a backend")
        self._dtls.close()
        self._srtp = None

    def _connected(self) -> None:
        self._srtp = self._dtls.srtp
        audio = self._offer.audio
        self.media = Media(
            ssrc=self._local.ssrc,
            payload_type=audio.payload_type,
            cname=self._local.cname,
            first_sequence=int.from_bytes(self._around.random_bytes(2), "big") >> 1,
            first_timestamp=int.from_bytes(self._around.random_bytes(4), "big"),
            sends=audio.direction.mirrored.sends,
            backend=self.backend,
            pacer=self._around.pacer,
            counts=self._around.mux.counts,
            clock=self._around.mux.clock,
            transmit=self._transmit,
            transmit_rtcp=self._transmit_rtcp,
            crash=lambda: self._on_end(End.INTERNAL_ERROR),
        )
        self._on_step("dtls")
        self._open_channels()

    def _open_channels(self) -> None:
        application = self._offer.application
        if application is None or self._channels is not None:
            return
        self._channels = Channels(
            self._dtls,
            self._dialect_of,
            self._line,
            self._around.mux.clock,
            on_open=lambda: self._on_step("channel"),
        )
        self._channels.begin(application.sctp_port, application.max_message_size)

    def _closed(self, failure: Failure | None) -> None:
        self._on_end(End.CLOSED_BY_PEER if failure is None else End(failure))

    def _transmit(self, packet: bytes) -> None:
        if self._srtp is not None:
            self._send(self._srtp.protect(packet))
            if not self._sounds:
                self._sounds = True
                self._on_step("first_audio")

    def _transmit_rtcp(self, packet: bytes) -> None:
        if self._srtp is not None:
            self._send(self._srtp.protect_rtcp(packet))
