"""What is read from offers, recorded and bent ones."""

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.transceiver.sdp.offers import FINGERPRINT, RECORDED, SMALL, recorded, small
from transceiver.sdp import (
    Application,
    Audio,
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


# Recorded offers


@pytest.mark.parametrize(
    ("name", "audio", "application"),
    [
        (
            "chromium-no-candidates",
            Audio(0, "0", 111, Direction.SENDRECV, 3412008767, 4, True),
            Application(1, "1", 5000, 262144, False),
        ),
        (
            "chromium-two-videos",
            Audio(0, "0", 111, Direction.SENDRECV, 452035720, 4, True),
            Application(3, "3", 5000, 262144, False),
        ),
        (
            "chromium-video-first",
            Audio(1, "1", 111, Direction.RECVONLY, None, 9, True),
            None,
        ),
        (
            "firefox-mdns",
            Audio(0, "0", 109, Direction.SENDRECV, 446665015, 3, True),
            Application(1, "1", 5000, 1073741823, False),
        ),
        (
            "firefox-video-bundle-only",
            Audio(0, "0", 109, Direction.SENDRECV, 1475999091, 3, True),
            Application(3, "3", 5000, 1073741823, False),
        ),
        (
            "aiortc",
            Audio(0, "0", 96, Direction.SENDRECV, 3483446227, 1, True),
            Application(1, "1", 5000, 262144, False),
        ),
        (
            "safari",
            Audio(0, "0", 111, Direction.SENDRECV, 1557912193, 4, True),
            Application(1, "1", 5000, 262144, False),
        ),
        (
            "gstreamer-webrtcbin",
            Audio(0, "audio0", 97, Direction.SENDRECV, 2739467381, None, True),
            Application(1, "application1", 5000, 65536, False),
        ),
        (
            "esp32-libpeer",
            Audio(0, "audio", 111, Direction.SENDRECV, 6, None, True),
            Application(1, "datachannel", 5000, 262144, False),
        ),
        ("obs-whip", Audio(0, "0", 111, Direction.SENDONLY, 3388068600, None, True), None),
        (
            "old-sctpmap",
            Audio(0, "sdparta_0", 109, Direction.SENDRECV, 1099187434, None, True),
            Application(1, "sdparta_1", 5000, 1073741823, True),
        ),
        (
            "chromium-listener",
            Audio(0, "0", 111, Direction.RECVONLY, None, 4, True),
            None,
        ),
        (
            "chromium-red-first",
            Audio(0, "0", 111, Direction.SENDRECV, 3115013260, 4, True),
            None,
        ),
        (
            "chromium-two-audios",
            Audio(0, "0", 111, Direction.SENDRECV, 3353489684, 4, True),
            None,
        ),
        (
            "chromium-video-rejected-later",
            Audio(1, "1", 111, Direction.SENDRECV, 181609629, 9, True),
            Application(2, "2", 5000, 262144, False),
        ),
        (
            "firefox-bundle-later",
            Audio(0, "0", 109, Direction.SENDRECV, 164564989, 3, True),
            Application(2, "2", 5000, 1073741823, False),
        ),
        (
            "firefox-speaker",
            Audio(0, "0", 109, Direction.SENDONLY, 3370070501, 3, True),
            None,
        ),
        (
            "pipecat-chromium",
            Audio(0, "0", 111, Direction.SENDRECV, 2780832028, 4, True),
            Application(3, "3", 5000, 262144, False),
        ),
        (
            "pipecat-firefox",
            Audio(0, "0", 109, Direction.SENDRECV, 596756834, 3, True),
            Application(3, "3", 5000, 1073741823, False),
        ),
        (
            "gstreamer-max-bundle-video",
            Audio(0, "audio0", 97, Direction.SENDRECV, 3055316623, None, True),
            Application(2, "application2", 5000, 65536, False),
        ),
        (
            "gstreamer-no-bundle",
            Audio(0, "audio0", 97, Direction.SENDRECV, 4220081297, None, True),
            None,
        ),
        (
            "safari-12-ios",
            Audio(0, "audio", 111, Direction.SENDRECV, 205815247, None, True),
            Application(2, "data", 5000, 65536, True),
        ),
        (
            "native-sdk-renomination",
            Audio(0, "0", 111, Direction.SENDRECV, 3103474561, None, True),
            Application(1, "1", 5000, 262144, False),
        ),
        (
            "pion",
            Audio(0, "0", 111, Direction.SENDRECV, 920256325, None, True),
            Application(1, "1", 5000, 1073741823, False),
        ),
        (
            "werift",
            Audio(0, "0", 96, Direction.SENDRECV, 2071653402, 1, True),
            Application(1, "1", 5000, 65536, False),
        ),
        (
            "libdatachannel",
            Audio(0, "audio", 111, Direction.SENDRECV, 42, None, True),
            Application(1, "1", 5000, 262144, False),
        ),
    ],
)
def test_recorded_offers(name: str, audio: Audio, application: Application | None) -> None:
    offer = parse_offer(recorded(name))
    assert offer.audio == audio
    assert offer.application == application
    assert offer.setup is Setup.ACTPASS
    assert offer.fingerprints[0][0] == "sha-256"


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_offer_is_read_with_either_line_end(path: object) -> None:
    text = recorded(getattr(path, "stem", ""))
    offer = parse_offer(text)
    assert offer == parse_offer(text.replace("\r\n", "\n"))
    assert len(offer.sections) == text.count("\nm=")
    assert set(offer.bundle) <= {section.mid for section in offer.sections}
    assert bool(offer.bundle) == ("a=group:BUNDLE" in text)
    assert f"a=ice-ufrag:{offer.ufrag}" in text
    assert f"a=ice-pwd:{offer.pwd}" in text
    assert offer.pwd not in repr(offer)


def test_of_many_opus_formats_the_one_that_the_client_prefers_is_taken() -> None:
    """In the order of the m-line (RFC 3264 section 6.1)."""
    offer = parse_offer(recorded("multiopus-first"))
    assert (offer.audio.payload_type, offer.setup) == (109, Setup.ACTIVE)
    turned = recorded("multiopus-first").replace("112 109 63 111", "112 111 63 109")
    assert parse_offer(turned).audio.payload_type == 111


def test_all_fingerprints_of_aiortc_are_kept() -> None:
    offer = parse_offer(recorded("aiortc"))
    assert [algorithm for algorithm, _ in offer.fingerprints] == ["sha-256", "sha-384", "sha-512"]


# Which sections


def test_the_small_offer() -> None:
    offer = parse_offer(SMALL)
    assert (offer.ufrag, offer.pwd) == ("abcd", "p" * 22)
    assert offer.fingerprints == (("sha-256", FINGERPRINT),)
    assert offer.audio == Audio(0, "0", 111, Direction.SENDRECV, None, None, True)
    assert offer.application == Application(1, "1", 5000, 65536, False)
    assert [(s.kind, s.protocol, s.format, s.mid) for s in offer.sections] == [
        ("audio", "UDP/TLS/RTP/SAVPF", "111", "0"),
        ("application", "UDP/DTLS/SCTP", "webrtc-datachannel", "1"),
    ]
    assert offer.bundle == ("0", "1")


@pytest.mark.parametrize(
    ("protocol", "accepted"),
    [
        ("UDP/TLS/RTP/SAVP", True),
        ("udp/tls/rtp/savpf", True),
        ("RTP/SAVPF", True),
        ("RTP/AVP", False),
        ("TCP/DTLS/RTP/SAVPF", False),
    ],
)
def test_protocols_of_audio(protocol: str, accepted: bool) -> None:
    text = small(("UDP/TLS/RTP/SAVPF", protocol))
    if accepted:
        assert parse_offer(text).sections[0].protocol == protocol
    else:
        assert refusal(text).reason is Reason.NO_AUDIO


def test_the_first_acceptable_audio_section_is_taken() -> None:
    pcm = "m=audio 9 UDP/TLS/RTP/SAVPF 0\na=mid:pcm\na=rtpmap:0 PCMU/8000\n"
    rejected = "m=audio 0 UDP/TLS/RTP/SAVPF 111\na=mid:off\na=rtpmap:111 opus/48000/2\n"
    offer = parse_offer(small(("m=audio", pcm + rejected + "m=audio")))
    assert offer.audio.index == 2
    assert len(offer.sections) == 4


def test_port_0_means_rejected_unless_the_section_is_bundled() -> None:
    alone = small(("m=audio 9", "m=audio 0"), ("a=group:BUNDLE 0 1\n", ""))
    assert refusal(alone).reason is Reason.NO_AUDIO
    assert refusal(alone.replace("a=mid:0\n", "a=bundle-only\n")).reason is Reason.NO_AUDIO
    bundled = small(("m=audio 9", "m=audio 0"))
    assert parse_offer(bundled).audio.index == 0
    flagged = alone.replace("a=mid:0\n", "a=mid:0\na=bundle-only\n")
    assert parse_offer(flagged).audio.index == 0


def test_no_audio_is_named_with_the_mend() -> None:
    error = refusal(small(("m=audio", "m=video")))
    assert error.reason is Reason.NO_AUDIO
    assert "add an audio track" in error.detail


@pytest.mark.parametrize("codec", ["OPUS/48000/2", "opus/48000", "Opus/48000/1"])
def test_opus_is_found_in_any_case(codec: str) -> None:
    assert parse_offer(small(("opus/48000/2", codec))).audio.payload_type == 111


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(("opus/48000/2", "opus/24000/2"), id="rate"),
        pytest.param(("opus/48000/2", "multiopus/48000/6"), id="name"),
        pytest.param(("a=rtpmap:111", "a=rtpmap:112"), id="not_a_format"),
        pytest.param(("a=rtpmap:111 opus/48000/2\n", ""), id="no_rtpmap"),
        pytest.param(("111", "200"), id="payload_type"),
    ],
)
def test_audio_without_opus(change: tuple[str, str]) -> None:
    error = refusal(small(change))
    assert error.reason is Reason.NO_OPUS
    assert "a=rtpmap" in error.detail


def test_a_data_channel_outside_the_audio_bundle_is_left_out() -> None:
    assert parse_offer(small(("BUNDLE 0 1", "BUNDLE 0"))).application is None
    offer = parse_offer(small(("a=group:BUNDLE 0 1", "a=group:LS 0 1\na=group:")))
    assert (offer.application, offer.bundle) == (None, ())


def test_audio_without_mid_has_no_bundle() -> None:
    offer = parse_offer(small(("a=mid:0\n", "")))
    assert (offer.audio.mid, offer.bundle, offer.application) == (None, (), None)


def test_only_the_group_of_the_audio_counts() -> None:
    offer = parse_offer(small(("a=group:BUNDLE 0 1", "a=group:BUNDLE 1\na=group:bundle 0")))
    assert (offer.bundle, offer.application) == (("0",), None)


def test_the_first_data_channel_section_is_taken() -> None:
    more = (
        "m=application 9 TCP/DTLS/SCTP webrtc-datachannel\na=mid:2\n"
        "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\na=mid:3\n"
    )
    offer = parse_offer(
        small(("BUNDLE 0 1", "BUNDLE 0 2 3 1"), ("m=application", more + "m=application"))
    )
    assert offer.application is not None
    assert offer.application.mid == "3"


def test_the_old_form_of_a_data_channel() -> None:
    offer = parse_offer(small(("UDP/DTLS/SCTP webrtc-datachannel", "DTLS/SCTP 5001")))
    assert offer.application == Application(1, "1", 5001, 65536, True)


@pytest.mark.parametrize(
    "line", ["a=sctp-port:x", "a=sctp-port:65536", "a=sctp-port:", "a=max-message-size:-1"]
)
def test_numbers_that_are_none(line: str) -> None:
    error = refusal(small(("a=sctp-port:5000", line)))
    assert error.reason is Reason.BAD_SDP
    assert line in error.detail


def test_numbers_that_are_left_out() -> None:
    application = parse_offer(small(("a=sctp-port:5000", ""))).application
    assert application == Application(1, "1", 5000, 65536, False)
    sized = parse_offer(small(("a=sctp-port:5000", "a=max-message-size:0"))).application
    assert sized is not None
    assert sized.max_message_size == 0


# Faults


def test_two_sections_with_one_mid() -> None:
    error = refusal(small(("a=mid:1", "a=mid:0")))
    assert (error.reason, "stands twice" in error.detail) == (Reason.BAD_SDP, True)


@pytest.mark.parametrize("mid", ["", "m" * 65, "a b", "\u00e9"])
def test_mids_that_are_no_tokens(mid: str) -> None:
    assert refusal(small(("a=mid:0", f"a=mid:{mid}"))).reason is Reason.BAD_SDP


@pytest.mark.parametrize(
    "more",
    [
        "a=candidate:1 1 udp 1 x.local 9 typ host",
        "a=candidate:",
        "a=end-of-candidates",
        "m=video 0 UDP/TLS/RTP/SAVPF 45\na=rtpmap:45 AV1/90000\na=mid:9\na=setup:holdconn",
        "m=text 9 TCP/MSRP *",
    ],
)
def test_what_is_none_of_our_business(more: str) -> None:
    assert parse_offer(SMALL + more + "\n").audio.payload_type == 111


@given(st.text(max_size=300))
def test_any_text_raises_sdp_error_or_nothing(text: str) -> None:
    for candidate in (text, "v=0\n" + text, SMALL + text):
        with contextlib.suppress(SdpError):
            parse_offer(candidate)


@given(st.sampled_from(RECORDED), st.integers(0, 2**32))
def test_bent_offers_raise_sdp_error_or_nothing(path: object, seed: int) -> None:
    dice = random.Random(seed)
    text = recorded(getattr(path, "stem", ""))
    for _ in range(dice.randrange(1, 6)):
        at = dice.randrange(len(text))
        if dice.random() < 0.5:
            text = text[:at] + text[at + dice.randrange(1, 60) :]
        else:
            text = text[:at] + dice.choice(":/ =09\nam\u00e9") + text[at + 1 :]
    with contextlib.suppress(SdpError):
        parse_offer(text)
