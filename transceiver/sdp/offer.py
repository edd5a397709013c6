"""Read an offer: its transport, one audio section with Opus, one data channel section.

Pure; RFC 8829 (JSEP), 8843 (BUNDLE), 8839 (ICE), 8842 (DTLS), 8841 (SCTP). Strict about what we
use, deaf to everything else. The client's candidates are not read: its checks find us.
"""

import dataclasses
import re
from collections.abc import Container

from transceiver.sdp.block import Block, split
from transceiver.sdp.error import Reason, SdpError
from transceiver.sdp.model import Application, Audio, Direction, Offer, Section, Setup

RTP_PROTOCOLS = frozenset(
    {"UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "RTP/SAVPF", "RTP/SAVP"}  # the last two: old clients
)
SCTP_PROTOCOLS = frozenset({"UDP/DTLS/SCTP", "DTLS/SCTP"})  # the second: the form with a=sctpmap
MID_EXTENSION = "urn:ietf:params:rtp-hdrext:sdes:mid"
HASH_SIZES = {"sha-256": 32, "sha-384": 48, "sha-512": 64}  # bytes; what DTLS verifies here
DEFAULT_SCTP_PORT = 5000
DEFAULT_MAX_MESSAGE_SIZE = 65536  # bytes, RFC 8841 section 6.1

_UFRAG = re.compile(r"[A-Za-z0-9+/]{4,256}")  # ice-char, RFC 8839 section 5.4
_PWD = re.compile(r"[A-Za-z0-9+/]{22,256}")
_MID = re.compile(r"[!-~]{1,64}")
_OPUS = re.compile(r"(\d{1,3}) +opus/48000(/\d)?", re.IGNORECASE | re.ASCII)
_EXTENSION = re.compile(r"(\d{1,2})(?:/sendrecv)? +(\S+)", re.ASCII)
_SSRC = re.compile(r"(\d{1,10})( |$)", re.ASCII)
_FINGERPRINT = re.compile(r"(\S+) +([0-9A-F]{2}(?::[0-9A-F]{2})*)", re.IGNORECASE | re.ASCII)


def parse_offer(text: str) -> Offer:
    """Read an offer. Raises `SdpError`, and nothing else."""
    session, sections = split(text)
    if session.has("ice-lite"):
        raise SdpError(
            Reason.ICE_LITE_PEER, "`a=ice-lite`: we wait for checks, so the client has to be full"
        )
    mids = _mids(sections)
    bundles = _bundles(session)
    audio = _audio(sections, mids, bundles, session)
    bundle = bundles.get(audio.mid, ())
    # Transport attributes stand in the section, in the first one of its bundle (RFC 8843
    # section 7.1.3), or at session level.
    tagged = [block for block, mid in zip(sections, mids, strict=True) if mid in bundle[:1]]
    sources = [sections[audio.index], *tagged, session]
    return Offer(
        ufrag=_credential("ice-ufrag", _UFRAG, sources),
        pwd=_credential("ice-pwd", _PWD, sources),
        fingerprints=_fingerprints(sources),
        setup=_setup(sources),
        audio=audio,
        application=_application(sections, mids, bundle),
        sections=tuple(
            Section(block.kind, block.protocol, block.formats[0], mid)
            for block, mid in zip(sections, mids, strict=True)
        ),
        bundle=bundle,
    )


def with_credentials(offer: Offer, ufrag: str, pwd: str) -> Offer:
    """`offer` as it would be after an ICE restart that named credentials alone (RFC 8840 section
    4.4). Raises `SdpError(NO_ICE)`."""
    named = [Block(attributes={"ice-ufrag": [ufrag], "ice-pwd": [pwd]})]
    return dataclasses.replace(
        offer,
        ufrag=_credential("ice-ufrag", _UFRAG, named),
        pwd=_credential("ice-pwd", _PWD, named),
    )


def _mids(sections: list[Block]) -> list[str | None]:
    mids = [block.first("mid") for block in sections]
    named = [mid for mid in mids if mid is not None]
    for mid in named:
        if not _MID.fullmatch(mid):
            raise SdpError(Reason.BAD_SDP, f"`a=mid:{mid[:80]}`: want 1-64 visible characters")
        if named.count(mid) > 1:
            raise SdpError(Reason.BAD_SDP, f"`a=mid:{mid}` stands twice: every section has its own")
    return mids


def _bundles(session: Block) -> dict[str | None, tuple[str, ...]]:
    """The BUNDLE group of each mid that is in one."""
    bundles: dict[str | None, tuple[str, ...]] = {}
    for semantics, *mids in (value.split() or [""] for value in session.all("group")):
        if semantics.upper() == "BUNDLE":
            group = tuple(mids)
            for mid in group:
                bundles.setdefault(mid, group)
    return bundles


def _offered(block: Block, mid: str | None, bundled: Container[str | None]) -> bool:
    """Port 0 means rejected, except for a section that rides on another's port (RFC 8843
    section 6)."""
    return block.port > 0 or (mid is not None and (block.has("bundle-only") or mid in bundled))


def _audio(
    sections: list[Block],
    mids: list[str | None],
    bundled: Container[str | None],
    session: Block,
) -> Audio:
    refused = "no m=audio line that is offered (port above 0) over DTLS-SRTP: add an audio track"
    reason = Reason.NO_AUDIO
    for index, (block, mid) in enumerate(zip(sections, mids, strict=True)):
        if block.kind != "audio" or block.protocol.upper() not in RTP_PROTOCOLS:
            continue
        if not _offered(block, mid, bundled):
            continue
        payload_type = _opus(block)
        if payload_type is not None:
            return Audio(
                index=index,
                mid=mid,
                payload_type=payload_type,
                direction=_direction(block, session),
                ssrc=_ssrc(block),
                mid_extension=_mid_extension(block),
                rtcp_mux=block.has("rtcp-mux"),
            )
        reason, refused = Reason.NO_OPUS, "no `a=rtpmap:<n> opus/48000/2` for an m=audio format"
    raise SdpError(reason, refused)


def _opus(block: Block) -> int | None:
    """The first payload type of Opus in the order of the m-line, which is the client's wish."""
    matches = (_OPUS.fullmatch(value) for value in block.all("rtpmap"))
    known = {match[1] for match in matches if match and int(match[1]) < 128}
    return next((int(number) for number in block.formats if number in known), None)


def _direction(block: Block, session: Block) -> Direction:
    for source in (block, session):
        for direction in Direction:
            if source.has(direction):
                return direction
    return Direction.SENDRECV


def _ssrc(block: Block) -> int | None:
    match = _SSRC.match(block.first("ssrc") or "")
    return int(match[1]) if match and int(match[1]) < 2**32 else None


def _mid_extension(block: Block) -> int | None:
    for value in block.all("extmap"):
        match = _EXTENSION.match(value)  # none for one way only: the answer would have to mirror it
        if match and match[2] == MID_EXTENSION and 0 < int(match[1]) < 15:
            return int(match[1])
    return None


def _application(
    sections: list[Block], mids: list[str | None], bundle: tuple[str, ...]
) -> Application | None:
    """The first data channel section that shares the audio's transport: a call has only one."""
    for index, (block, mid) in enumerate(zip(sections, mids, strict=True)):
        protocol = block.protocol.upper()
        if block.kind == "application" and protocol in SCTP_PROTOCOLS and mid in bundle:
            old_form = block.formats[0].isdecimal()
            port = block.formats[0] if old_form else block.first("sctp-port")
            return Application(
                index=index,
                mid=mid,
                sctp_port=_number("sctp-port", port, DEFAULT_SCTP_PORT, 65535),
                max_message_size=_number(
                    "max-message-size", block.first("max-message-size"), DEFAULT_MAX_MESSAGE_SIZE
                ),
                sctpmap=old_form,
            )
    return None


def _number(name: str, value: str | None, default: int, most: int = 2**63) -> int:
    if value is None:
        return default
    if not (value.isascii() and value.isdecimal() and len(value) < 20 and int(value) <= most):
        raise SdpError(Reason.BAD_SDP, f"`a={name}:{value[:40]}`: want a number up to {most}")
    return int(value)


def _credential(name: str, pattern: re.Pattern[str], sources: list[Block]) -> str:
    value = next((source.first(name) for source in sources if source.has(name)), None)
    if value is None:
        raise SdpError(
            Reason.NO_ICE, f"no `a={name}` for audio: set the local description, then send it"
        )
    if not pattern.fullmatch(value):
        raise SdpError(
            Reason.NO_ICE, f"`a={name}` of {len(value)} characters: want {pattern.pattern}"
        )
    return value


def _fingerprints(sources: list[Block]) -> tuple[tuple[str, str], ...]:
    offered = next((s.all("fingerprint") for s in sources if s.has("fingerprint")), [])
    usable = []
    for value in offered:
        match = _FINGERPRINT.fullmatch(value)
        if match and len(match[2]) + 1 == 3 * HASH_SIZES.get(match[1].lower(), 0):
            usable.append((match[1].lower(), match[2].upper()))
    if not usable:
        wanted = ", ".join(HASH_SIZES)
        raise SdpError(
            Reason.NO_FINGERPRINT, f"no whole `a=fingerprint` for audio with one of {wanted}"
        )
    return tuple(usable)


def _setup(sources: list[Block]) -> Setup:
    """Anything that leaves the choice to us, `holdconn` and nothing included, is actpass."""
    value = next((source.first("setup") for source in sources if source.has("setup")), None)
    return Setup(value) if value in list(Setup) else Setup.ACTPASS
