"""What an offer says that matters to us, as values; and when two of them are of one call. Pure."""

import enum
from dataclasses import dataclass, field, replace

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

    @property
    def accepted(self) -> tuple[Audio | Application, ...]:
        """The sections we take, in the order of the bundle: the first one's transport is that of
        all (RFC 8843 section 7.3)."""
        if self.application is None:
            return (self.audio,)
        both = (self.audio, self.application)
        return tuple(sorted(both, key=lambda section: self.bundle.index(section.mid or "")))


def continued(old: Offer, new: Offer) -> Offer:
    """`new` as a later offer of the call that `old` is of: its DTLS association goes on, so the
    roles of that stay (RFC 8842 section 5.5), and whatever carries its audio has to stay too.
    Directions, sections that we reject, and whether there is a data channel may change.

    Raises `SdpError(BUNDLE_CHANGED)` when `new` describes another call."""
    taken = Setup.ACTIVE if old.setup is Setup.PASSIVE else Setup.PASSIVE  # our role
    moved = (
        old.application and new.application and _place(old.application) != _place(new.application)
    )
    for thing, before, after in (
        ("audio section", old.audio.index, new.audio.index),
        ("a=mid of audio", old.audio.mid, new.audio.mid),
        ("Opus payload type", old.audio.payload_type, new.audio.payload_type),
        ("application section", False, bool(moved)),
        ("first section of the bundle", old.accepted[0].mid, new.accepted[0].mid),
        ("DTLS fingerprint", set(old.fingerprints), set(new.fingerprints)),
        ("DTLS role", False, new.setup is taken),
    ):
        if before != after:
            raise SdpError(
                Reason.BUNDLE_CHANGED,
                f"another {thing} than the call has: leave it as it is, or start a new call",
            )
    return replace(new, setup=old.setup)


def _place(section: Application) -> tuple[int, str | None]:
    return section.index, section.mid
