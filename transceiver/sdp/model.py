"""What an offer says that matters to us, as values; and when two of them are of one call."""

import enum
from dataclasses import dataclass, field

from transceiver.sdp.error import Reason, SdpError


class Direction(enum.StrEnum):
    SENDRECV = "sendrecv"
    SENDONLY = "sendonly"
    RECVONLY = "recvonly"
    INACTIVE = "inactive"

    @property
    def mirrored(self) -> "Direction":
        """What the answerer says to it (RFC 3264 section 6.1)."""
        return _MIRRORED.get(self, self)

    @property
    def sends(self) -> bool:
        return self in (Direction.SENDRECV, Direction.SENDONLY)


_MIRRORED = {Direction.SENDONLY: Direction.RECVONLY, Direction.RECVONLY: Direction.SENDONLY}


class Setup(enum.StrEnum):
    """DTLS role: active = client, passive = server."""

    ACTPASS = "actpass"
    ACTIVE = "active"
    PASSIVE = "passive"


@dataclass(frozen=True, slots=True)
class Audio:
    """The audio section we accept."""

    index: int  # of its section
    mid: str | None
    payload_type: int  # of Opus
    direction: Direction  # as offered
    ssrc: int | None  # of what the client sends, if it says so
    mid_extension: int | None  # id of the RTP header extension sdes:mid, if offered
    rtcp_mux: bool


@dataclass(frozen=True, slots=True)
class Application:
    """The data channel section we accept."""

    index: int
    mid: str | None
    sctp_port: int
    max_message_size: int  # bytes that the client takes; 0 = any
    sctpmap: bool  # in the old form, `DTLS/SCTP 5000` with a=sctpmap


@dataclass(frozen=True, slots=True)
class Section:
    """An m-line: what an answer has to repeat, accepted or not."""

    kind: str  # audio, video, application, ...
    protocol: str
    format: str  # the first one
    mid: str | None


@dataclass(frozen=True, slots=True)
class Offer:
    ufrag: str
    pwd: str = field(repr=False)
    fingerprints: tuple[tuple[str, str], ...]  # (sha-256, AB:CD:...): lower and upper case
    setup: Setup
    audio: Audio
    application: Application | None
    sections: tuple[Section, ...]
    bundle: tuple[str, ...]  # mids of the group that audio is in; empty = no BUNDLE


def same_bundle(old: Offer, new: Offer) -> None:
    """An ICE restart keeps the call: DTLS association, streams and channels go on.

    Raises `SdpError(BUNDLE_CHANGED)` when `new` describes another one."""
    for thing, before, after in (
        ("audio section", old.audio.index, new.audio.index),
        ("a=mid of audio", old.audio.mid, new.audio.mid),
        ("Opus payload type", old.audio.payload_type, new.audio.payload_type),
        ("application section", _place(old.application), _place(new.application)),
        ("first section of the bundle", old.bundle[:1], new.bundle[:1]),
        ("DTLS fingerprint", set(old.fingerprints), set(new.fingerprints)),
        ("DTLS role", old.setup is Setup.PASSIVE, new.setup is Setup.PASSIVE),
    ):
        if before != after:
            raise SdpError(
                Reason.BUNDLE_CHANGED,
                f"another {thing} than the call has: restart ICE only, or start a new call",
            )


def _place(application: Application | None) -> tuple[int, str | None] | None:
    return None if application is None else (application.index, application.mid)
