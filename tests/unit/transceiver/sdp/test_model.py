"""Directions, and what an ICE restart may change."""

import pytest

from tests.unit.transceiver.sdp.offers import FINGERPRINT, SMALL, small
from transceiver.sdp import Direction, Reason, SdpError, parse_offer, same_bundle


def test_directions_mirrored() -> None:
    assert [direction.mirrored for direction in Direction] == [
        Direction.SENDRECV,
        Direction.RECVONLY,
        Direction.SENDONLY,
        Direction.INACTIVE,
    ]
    assert [direction.sends for direction in Direction] == [True, True, False, False]


def test_the_same_bundle_with_new_credentials() -> None:
    new = small(
        ("a=ice-ufrag:abcd", "a=ice-ufrag:wxyz"),
        ("a=sendrecv", "a=recvonly"),
        ("a=setup:actpass", "a=setup:active"),
    )
    same_bundle(parse_offer(SMALL), parse_offer(new))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(
            ("m=audio", "m=video 9 UDP/TLS/RTP/SAVPF 96\nm=audio"), "audio section", id="index"
        ),
        pytest.param(("0 1\n", "00 1\n"), "a=mid of audio", id="mid"),
        pytest.param(("111", "109"), "Opus payload type", id="opus"),
        pytest.param(("m=application", "m=video"), "application section", id="application"),
        pytest.param(("BUNDLE 0 1", "BUNDLE 1 0"), "first section of the bundle", id="first"),
        pytest.param((FINGERPRINT, FINGERPRINT.replace("A", "C")), "DTLS fingerprint", id="key"),
        pytest.param(("setup:actpass", "setup:passive"), "DTLS role", id="role"),
    ],
)
def test_another_bundle(change: tuple[str, str], says: str) -> None:
    changes = [change, ("a=mid:0", "a=mid:00")] if says == "a=mid of audio" else [change]
    with pytest.raises(SdpError) as caught:
        same_bundle(parse_offer(SMALL), parse_offer(small(*changes)))
    assert caught.value.reason is Reason.BUNDLE_CHANGED
    assert f"another {says} " in caught.value.detail
