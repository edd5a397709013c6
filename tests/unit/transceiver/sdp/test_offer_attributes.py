"""What is read of a section: direction, streams, ICE, DTLS."""

import pytest

from tests.unit.transceiver.sdp.offers import FINGERPRINT, SMALL, small
from transceiver.sdp import (
    Direction,
    Reason,
    SdpError,
    Setup,
    parse_offer,
)


def refusal(text: str) -> SdpError:
    with pytest.raises(SdpError) as caught:
        parse_offer(text)
    assert "p" * 22 not in str(caught.value)  # no password
    return caught.value


# Attributes of audio


@pytest.mark.parametrize("direction", list(Direction))
def test_direction_of_the_section(direction: Direction) -> None:
    text = small(("a=sendrecv", f"a={direction}"), ("t=0 0", "t=0 0\na=inactive"))
    assert parse_offer(text).audio.direction is direction


def test_direction_of_the_session_and_none_at_all() -> None:
    above = small(("a=sendrecv\n", ""), ("t=0 0", "t=0 0\na=recvonly"))
    assert parse_offer(above).audio.direction is Direction.RECVONLY
    assert parse_offer(small(("a=sendrecv\n", ""))).audio.direction is Direction.SENDRECV


@pytest.mark.parametrize(
    ("line", "ssrc"),
    [
        ("a=ssrc:7 cname:x", 7),
        ("a=ssrc:4294967295", 4294967295),
        ("a=ssrc:4294967296 cname:x", None),
        ("a=ssrc:x", None),
        ("a=ssrc:7x", None),
        ("a=ssrc-group:FID 1 2", None),
    ],
)
def test_ssrc(line: str, ssrc: int | None) -> None:
    assert parse_offer(small(("a=rtcp-mux", line))).audio.ssrc == ssrc


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid", 4),
        ("a=extmap:4/sendrecv urn:ietf:params:rtp-hdrext:sdes:mid", 4),
        ("a=extmap:4/recvonly urn:ietf:params:rtp-hdrext:sdes:mid", None),
        ("a=extmap:15 urn:ietf:params:rtp-hdrext:sdes:mid", None),
        ("a=extmap:0 urn:ietf:params:rtp-hdrext:sdes:mid", None),
        ("a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id", None),
        ("a=extmap:x", None),
    ],
)
def test_mid_extension(line: str, number: int | None) -> None:
    assert parse_offer(small(("a=rtcp-mux", line))).audio.mid_extension == number


def test_rtcp_mux_may_be_missing() -> None:
    assert not parse_offer(small(("a=rtcp-mux\n", ""))).audio.rtcp_mux


# Transport


def test_ice_lite_is_refused() -> None:
    error = refusal(small(("t=0 0", "t=0 0\na=ice-lite")))
    assert error.reason is Reason.ICE_LITE_PEER


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("a=ice-ufrag:abcd", "no `a=ice-ufrag`"),
        (f"a=ice-pwd:{'p' * 22}", "no `a=ice-pwd`"),
    ],
)
def test_missing_credentials(line: str, says: str) -> None:
    error = refusal(small((line, "a=x")))
    assert error.reason is Reason.NO_ICE
    assert says in error.detail


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("a=ice-ufrag:abcd", "a=ice-ufrag:abc"),
        ("a=ice-ufrag:abcd", "a=ice-ufrag:ab:d"),
        ("a=ice-ufrag:abcd", "a=ice-ufrag:" + "a" * 257),
        (f"a=ice-pwd:{'p' * 22}", f"a=ice-pwd:{'p' * 21}"),
        (f"a=ice-pwd:{'p' * 22}", f"a=ice-pwd:{'p' * 22}-"),
    ],
)
def test_bad_credentials(line: str, new: str) -> None:
    error = refusal(small((line, new)))
    assert error.reason is Reason.NO_ICE
    assert "characters: want [A-Za-z0-9+/]" in error.detail
    assert new.partition(":")[2] not in error.detail


TRANSPORT = f"""\
a=ice-ufrag:efgh
a=ice-pwd:{"q" * 22}
a=fingerprint:sha-256 {":".join(["CD"] * 32)}
a=setup:active
"""
OWN_TRANSPORT = SMALL[SMALL.index("a=ice-ufrag") : SMALL.index("m=application")]


def test_transport_at_session_level() -> None:
    offer = parse_offer(small((OWN_TRANSPORT, ""), ("t=0 0\n", "t=0 0\n" + TRANSPORT)))
    assert (offer.ufrag, offer.setup) == ("efgh", Setup.ACTIVE)


def test_transport_of_the_first_section_of_the_bundle() -> None:
    first = "m=video 9 UDP/TLS/RTP/SAVPF 96\na=mid:v\n" + TRANSPORT
    offer = parse_offer(
        small((OWN_TRANSPORT, ""), ("BUNDLE 0 1", "BUNDLE v 0 1"), ("m=audio", first + "m=audio"))
    )
    assert (offer.ufrag, offer.pwd, offer.setup) == ("efgh", "q" * 22, Setup.ACTIVE)
    assert offer.fingerprints[0][1].startswith("CD")


def test_transport_of_another_section_does_not_count() -> None:
    text = small((OWN_TRANSPORT, "")) + TRANSPORT  # of the data channel, second in the bundle
    assert refusal(text).reason is Reason.NO_ICE


def test_the_own_transport_of_audio_goes_first() -> None:
    offer = parse_offer(small(("t=0 0\n", "t=0 0\n" + TRANSPORT)))
    assert (offer.ufrag, offer.setup) == ("abcd", Setup.ACTPASS)


@pytest.mark.parametrize(
    "value",
    [
        "sha-1 AB:CD",
        f"sha-1 {FINGERPRINT}",
        f"sha-384 {FINGERPRINT}",
        FINGERPRINT,
        f"sha-256 {FINGERPRINT}:AB",
        f"sha-256 {FINGERPRINT[:-1]}X",
        "",
    ],
)
def test_fingerprints_that_cannot_be_verified(value: str) -> None:
    error = refusal(small((f"sha-256 {FINGERPRINT}", value)))
    assert error.reason is Reason.NO_FINGERPRINT
    assert "sha-256, sha-384, sha-512" in error.detail


def test_no_fingerprint_at_all() -> None:
    text = small((f"a=fingerprint:sha-256 {FINGERPRINT}\n", ""))
    assert refusal(text).reason is Reason.NO_FINGERPRINT


def test_fingerprints_are_compared_in_one_case() -> None:
    text = small((f"sha-256 {FINGERPRINT}", f"SHA-256 {FINGERPRINT.lower()}"))
    assert parse_offer(text).fingerprints == (("sha-256", FINGERPRINT),)


@pytest.mark.parametrize(
    ("line", "setup"),
    [
        ("a=setup:active", Setup.ACTIVE),
        ("a=setup:passive", Setup.PASSIVE),
        ("a=setup:holdconn", Setup.ACTPASS),
        ("a=x", Setup.ACTPASS),
    ],
)
def test_setup(line: str, setup: Setup) -> None:
    assert parse_offer(small(("a=setup:actpass", line))).setup is setup
