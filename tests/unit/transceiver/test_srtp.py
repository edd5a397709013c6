import os

import pylibsrtp
import pytest
from pylibsrtp import Policy

from transceiver.rtp import Packet, build
from transceiver.srtp import MAX_PACKET, Srtp, SrtpError

REPORT = b"\x80\xc9\x00\x01\x00\x00\x00\x07"
PROFILES = [Policy.SRTP_PROFILE_AEAD_AES_128_GCM, Policy.SRTP_PROFILE_AES128_CM_SHA1_80]


def pair(profile: int = PROFILES[0]) -> tuple[Srtp, Srtp]:
    """Both ends of a call."""
    keys = [os.urandom(30), os.urandom(30)]

    def session(key: bytes, kind: int) -> pylibsrtp.Session:
        size = 28 if profile == PROFILES[0] else 30
        return pylibsrtp.Session(Policy(key[:size], kind, srtp_profile=profile))

    first, second = (
        Srtp(session(mine, Policy.SSRC_ANY_INBOUND), session(theirs, Policy.SSRC_ANY_OUTBOUND))
        for mine, theirs in (keys, reversed(keys))
    )
    return first, second


def packet(payload: bytes = b"sound", sequence: int = 1) -> bytes:
    return build(Packet(111, sequence, 960, 7, payload))


@pytest.mark.parametrize("profile", PROFILES)
def test_both_ways_and_no_packet_twice(profile: int) -> None:
    ends = pair(profile)
    for one, other in (ends, ends[::-1]):
        sealed = one.protect(packet())
        assert b"sound" not in sealed
        assert other.unprotect(sealed[:-1] + bytes([sealed[-1] ^ 1])) is None
        assert other.unprotect(sealed) == packet()
        assert other.unprotect(sealed) is None
        told = one.protect_rtcp(REPORT)
        assert other.unprotect_rtcp(told[:-5] + bytes([told[-5] ^ 1]) + told[-4:]) is None
        assert other.unprotect_rtcp(told) == REPORT
        assert other.unprotect_rtcp(told) is None


def test_calls_take_turns_in_the_buffer() -> None:
    """What one has made stays as it is, and is its own, when the next uses the same memory."""
    calls = [pair() for _ in range(3)]
    sealed = [one.protect(packet(bytes([n]) * (40 + n))) for n, (one, _) in enumerate(calls)]
    assert calls[0][1].unprotect(sealed[1]) is None
    plain = [other.unprotect(data) for (_, other), data in zip(calls, sealed, strict=True)]
    assert plain == [packet(bytes([n]) * (40 + n)) for n in range(3)]


@pytest.mark.parametrize("rtcp", [False, True])
def test_heard_is_what_was_authentic(rtcp: bool) -> None:
    one, other = pair()
    sealed = one.protect_rtcp(REPORT) if rtcp else one.protect(packet())
    open_it = other.unprotect_rtcp if rtcp else other.unprotect
    open_it(bytes(len(sealed)))
    assert not other.heard
    open_it(sealed)
    assert other.heard
    assert not one.heard


@pytest.mark.parametrize("size", [0, 1, 11, 12, 40, MAX_PACKET, MAX_PACKET + 1, 2048, 1 << 16])
def test_garbage_of_any_size_is_not_authentic(size: int) -> None:
    one, _ = pair()
    for first in (0x80, 0x9F, 0xBF):
        garbage = (bytes([first]) + os.urandom(size))[:size]
        assert one.unprotect(garbage) is None
        assert one.unprotect_rtcp(garbage) is None


def test_our_own_faults_are_raised() -> None:
    one, other = pair()
    with pytest.raises(SrtpError, match="of 1500 bytes"):
        one.protect(packet(bytes(MAX_PACKET - 12)))  # no room for a tag
    with pytest.raises(SrtpError, match="RTCP packet of 2000 bytes"):
        one.protect_rtcp(bytes(2000))
    one.protect(packet(sequence=9))
    with pytest.raises(SrtpError):
        one.protect(packet(sequence=9))  # the same key stream twice
    longest = packet(bytes(1300))
    assert other.unprotect(one.protect(longest[:2] + b"\0\x0a" + longest[4:])) is not None
