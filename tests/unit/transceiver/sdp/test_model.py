"""Directions, and what a later offer of a call may change."""

import pytest

from tests.unit.transceiver.sdp.offers import FINGERPRINT, SMALL, recorded, small
from transceiver.sdp import Direction, Offer, Reason, SdpError, Setup, continued, parse_offer


def test_directions_mirrored() -> None:
    assert [direction.mirrored for direction in Direction] == [
        Direction.SENDRECV,
        Direction.RECVONLY,
        Direction.SENDONLY,
        Direction.INACTIVE,
    ]
    assert [direction.sends for direction in Direction] == [True, True, False, False]


VIDEO = "m=video 9 UDP/TLS/RTP/SAVPF 96\na=mid:v\n"


def later(old: str, new: str) -> Offer:
    return continued(parse_offer(old), parse_offer(new))


def test_the_transport_of_the_bundle_is_that_of_its_first_accepted_section() -> None:
    assert [s.mid for s in parse_offer(SMALL).accepted] == ["0", "1"]
    assert [s.mid for s in parse_offer(small(("BUNDLE 0 1", "BUNDLE 1 0"))).accepted] == ["1", "0"]
    assert [s.mid for s in parse_offer(recorded("chromium-video-first")).accepted] == ["1"]
    assert [s.mid for s in parse_offer(small(("a=mid:0\n", ""))).accepted] == [None]


def test_credentials_directions_and_rejected_sections_may_change() -> None:
    new = small(
        ("a=ice-ufrag:abcd", "a=ice-ufrag:wxyz"),
        ("a=sendrecv", "a=recvonly"),
        ("a=sctp-port:5000\n", "a=sctp-port:5000\n" + VIDEO),
    )
    offer = later(SMALL, new)
    assert (offer.ufrag, offer.audio.direction) == ("wxyz", Direction.RECVONLY)
    assert [section.kind for section in offer.sections] == ["audio", "application", "video"]


def test_a_data_channel_may_come_later_and_be_left_out_for_a_while() -> None:
    without = small(("BUNDLE 0 1", "BUNDLE 0"), ("m=application 9", "m=application 0"))
    assert later(without, SMALL).application is not None
    assert later(SMALL, without).application is None


def test_a_rejected_first_section_may_leave_the_bundle() -> None:
    """Browsers do that once our answer said no to it (RFC 8829 section 5.2.2)."""
    before = small(("m=audio", VIDEO + "m=audio"), ("BUNDLE 0 1", "BUNDLE v 0 1"))
    after = before.replace("m=video 9", "m=video 0").replace("BUNDLE v 0 1", "BUNDLE 0 1")
    assert later(before, after).bundle == ("0", "1")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("actpass", "actpass"),
        ("actpass", "active"),
        ("active", "actpass"),
        ("passive", "actpass"),
        ("passive", "passive"),
    ],
)
def test_the_roles_of_dtls_stay_what_they_were(before: str, after: str) -> None:
    old = small(("setup:actpass", f"setup:{before}"))
    assert later(old, small(("setup:actpass", f"setup:{after}"))).setup is Setup(before)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(
            ("m=audio", "m=video 9 UDP/TLS/RTP/SAVPF 96\nm=audio"), "audio section", id="index"
        ),
        pytest.param(("0 1\n", "00 1\n"), "a=mid of audio", id="mid"),
        pytest.param(("111", "109"), "Opus payload type", id="opus"),
        pytest.param(
            ("m=application", VIDEO + "m=application"), "application section", id="application"
        ),
        pytest.param(("BUNDLE 0 1", "BUNDLE 1 0"), "first section of the bundle", id="first"),
        pytest.param((FINGERPRINT, FINGERPRINT.replace("A", "C")), "DTLS fingerprint", id="key"),
        pytest.param(("setup:actpass", "setup:passive"), "DTLS role", id="role"),
    ],
)
def test_another_bundle(change: tuple[str, str], says: str) -> None:
    changes = [change, ("a=mid:0", "a=mid:00")] if says == "a=mid of audio" else [change]
    with pytest.raises(SdpError) as caught:
        later(SMALL, small(*changes))
    assert caught.value.reason is Reason.BUNDLE_CHANGED
    assert f"another {says} " in caught.value.detail


def test_a_client_that_is_the_dtls_server_stays_it() -> None:
    with pytest.raises(SdpError, match="another DTLS role"):
        later(small(("setup:actpass", "setup:passive")), small(("setup:actpass", "setup:active")))
