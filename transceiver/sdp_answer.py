"""Write the answer: one audio and one data channel section on one transport, nothing else.

Pure. One candidate per address family; rejected sections have port 0 and leave the BUNDLE. With
few sections the whole answer stays below 2 KiB, which small clients have as a fixed buffer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from relayctl.wire.address import Address
from transceiver.sdp import Application, Audio, Direction, Offer, Setup
from transceiver.sdp.offer import MID_EXTENSION

MAX_MESSAGE_SIZE = 262144  # bytes that we take in one data channel message
SCTP_PORT = 5000
SCTP_STREAMS = 65535
HOST_PREFERENCE = 126  # RFC 8445 section 5.1.2.2


@dataclass(frozen=True, slots=True)
class Local:
    """Our side of the answer."""

    ufrag: str
    pwd: str = field(repr=False)
    fingerprint: str  # `sha-256 AB:CD:...`
    ssrc: int  # of the stream that we send
    cname: str
    candidates: tuple[Address, ...]  # the VIPs: one per address family, in any order
    session_id: int  # below 2**62; the same in every answer of a call
    version: int = 1  # counts the answers of a call


def setup_of(offer: Offer) -> Setup:
    """Our DTLS role: server (passive), unless the offer insists on being that itself.

    As server we save each browser a round trip, and RSA certificates work."""
    return Setup.ACTIVE if offer.setup is Setup.PASSIVE else Setup.PASSIVE


def answer(offer: Offer, local: Local) -> str:
    """The SDP answer, with CRLF. Raises `ValueError` unless there is one candidate per family."""
    candidates = _by_preference(local.candidates)
    accepted = {section.index: section for section in offer.accepted}
    lines = list(_session(offer, local))
    for index, section in enumerate(offer.sections):
        if index in accepted:
            lines += _accept(offer, local, accepted[index], candidates[-1])
        else:
            lines += [f"m={section.kind} 0 {section.protocol} {section.format}"]
            lines += ["c=IN IP4 0.0.0.0", "a=inactive"]
            lines += _mid(section.mid)
        lines += _transport(offer, local)
        if index == offer.accepted[0].index:
            lines += _candidates(candidates)
    return "\r\n".join(lines) + "\r\n"


def _by_preference(candidates: tuple[Address, ...]) -> list[Address]:
    """IPv6 before IPv4, RFC 8421."""
    ordered = sorted(candidates, key=lambda address: ":" not in address[0])
    families = {":" in host for host, _ in ordered}
    if not ordered or len(families) < len(ordered):
        raise ValueError(f"{len(ordered)} candidates: an answer has one per address family")
    return ordered


def _session(offer: Offer, local: Local) -> Iterator[str]:
    yield "v=0"
    yield f"o=- {local.session_id} {local.version} IN IP4 0.0.0.0"
    yield "s=-"
    yield "t=0 0"
    if offer.bundle:
        yield "a=group:BUNDLE " + " ".join(section.mid or "" for section in offer.accepted)
    yield "a=ice-options:ice2"
    yield "a=msid-semantic: WMS *"


def _accept(
    offer: Offer,
    local: Local,
    section: Audio | Application,
    address: Address,
) -> Iterator[str]:
    """`address` is the IPv4 one if there is any: what old clients read."""
    host, port = address
    protocol = offer.sections[section.index].protocol
    connection = f"c=IN {'IP6' if ':' in host else 'IP4'} {host}"
    if isinstance(section, Audio):
        yield f"m=audio {port} {protocol} {section.payload_type}"
        yield connection
        yield from _mid(section.mid)
        yield from _audio(section, local)
    else:
        old_form = section.sctpmap
        yield f"m=application {port} {protocol} {SCTP_PORT if old_form else 'webrtc-datachannel'}"
        yield connection
        yield from _mid(section.mid)
        yield (
            f"a=sctpmap:{SCTP_PORT} webrtc-datachannel {SCTP_STREAMS}"
            if old_form
            else (f"a=sctp-port:{SCTP_PORT}")
        )
        yield f"a=max-message-size:{MAX_MESSAGE_SIZE}"


def _transport(offer: Offer, local: Local) -> Iterator[str]:
    """In every section: webrtcbin wants it in rejected ones too, and old clients look nowhere
    else."""
    yield f"a=ice-ufrag:{local.ufrag}"
    yield f"a=ice-pwd:{local.pwd}"
    yield f"a=fingerprint:{local.fingerprint}"
    yield f"a=setup:{setup_of(offer)}"


def _mid(mid: str | None) -> list[str]:
    return [] if mid is None else [f"a=mid:{mid}"]


def _audio(audio: Audio, local: Local) -> Iterator[str]:
    direction = audio.direction.mirrored
    yield f"a={direction}"
    if audio.mid_extension is not None:
        yield f"a=extmap:{audio.mid_extension} {MID_EXTENSION}"
    if audio.rtcp_mux:
        yield "a=rtcp-mux"
    yield f"a=rtpmap:{audio.payload_type} opus/48000/2"
    yield f"a=fmtp:{audio.payload_type} minptime=10;useinbandfec=1"
    if direction in (Direction.SENDRECV, Direction.SENDONLY):
        # Clients play `event.streams[0]`: without a stream id there is none.
        yield f"a=msid:{local.cname} audio"
        yield f"a=ssrc:{local.ssrc} cname:{local.cname}"


def _candidates(candidates: list[Address]) -> Iterator[str]:
    for index, (host, port) in enumerate(candidates):
        priority = HOST_PREFERENCE << 24 | (65535 - index) << 8 | 255
        yield f"a=candidate:{index + 1} 1 udp {priority} {host} {port} typ host"
    yield "a=end-of-candidates"
