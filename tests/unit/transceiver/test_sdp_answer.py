"""The answer: what it says, what it leaves out, and that others can read it."""

import dataclasses
from pathlib import Path

import pytest
from aiortc.sdp import SessionDescription

from tests.unit.transceiver.sdp.answer_rules import breaches
from tests.unit.transceiver.sdp.offers import RECORDED, SMALL, recorded, small
from transceiver.sdp import Setup, parse_offer
from transceiver.sdp_answer import Local, answer, setup_of

LOCAL = Local(
    ufrag="IWwJ+/iUTKZerg88cJwZO0e0",
    pwd="w" * 32,
    fingerprint="sha-256 " + ":".join(["EF"] * 32),
    ssrc=4294967295,
    cname="c0ffee00c0ffee00",
    candidates=(("203.0.113.10", 3478), ("2001:db8::10", 3478)),
    session_id=2**62 - 1,
    version=2,
)
ONLY_V4 = dataclasses.replace(LOCAL, candidates=LOCAL.candidates[:1])
V6 = "2001:db8:1234:5678:9abc:def0:1234:5678"
ONLY_V6 = dataclasses.replace(LOCAL, candidates=((V6, 3478),))


def replied(text: str, local: Local = LOCAL) -> list[str]:
    lines = answer(parse_offer(text), local).split("\r\n")
    assert lines.pop() == ""
    return lines


def section(lines: list[str], number: int) -> list[str]:
    starts = [at for at, line in enumerate(lines) if line.startswith("m=")]
    return lines[starts[number] : [*starts, len(lines)][number + 1]]


def test_the_whole_answer_to_a_small_offer() -> None:
    assert replied(SMALL) == [
        "v=0",
        "o=- 4611686018427387903 2 IN IP4 0.0.0.0",
        "s=-",
        "t=0 0",
        "a=group:BUNDLE 0 1",
        "a=ice-options:ice2",
        "a=msid-semantic: WMS *",
        "m=audio 3478 UDP/TLS/RTP/SAVPF 111",
        "c=IN IP4 203.0.113.10",
        "a=mid:0",
        "a=sendrecv",
        "a=rtcp-mux",
        "a=rtpmap:111 opus/48000/2",
        "a=fmtp:111 minptime=10;useinbandfec=1",
        "a=msid:c0ffee00c0ffee00 audio",
        "a=ssrc:4294967295 cname:c0ffee00c0ffee00",
        "a=ice-ufrag:IWwJ+/iUTKZerg88cJwZO0e0",
        "a=ice-pwd:wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
        "a=fingerprint:sha-256 " + ":".join(["EF"] * 32),
        "a=setup:passive",
        "a=candidate:1 1 udp 2130706431 2001:db8::10 3478 typ host",
        "a=candidate:2 1 udp 2130706175 203.0.113.10 3478 typ host",
        "a=end-of-candidates",
        "m=application 3478 UDP/DTLS/SCTP webrtc-datachannel",
        "c=IN IP4 203.0.113.10",
        "a=mid:1",
        "a=sctp-port:5000",
        "a=max-message-size:262144",
        "a=ice-ufrag:IWwJ+/iUTKZerg88cJwZO0e0",
        "a=ice-pwd:wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
        "a=fingerprint:sha-256 " + ":".join(["EF"] * 32),
        "a=setup:passive",
    ]


@pytest.mark.parametrize("local", [LOCAL, ONLY_V4, ONLY_V6], ids=["both", "v4", "v6"])
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_offer_is_answered_by_the_rules(path: Path, local: Local) -> None:
    text = recorded(path.stem)
    written = answer(parse_offer(text), local)
    assert breaches(text, written, local.candidates) == []


def test_an_answer_is_below_two_kilobytes_and_its_lines_below_a_thousand() -> None:
    """Small clients have a fixed buffer. The longest: two videos rejected, long names, IPv6."""
    local = dataclasses.replace(LOCAL, candidates=((V6, 65535), ("203.0.113.110", 65535)))
    texts = [answer(parse_offer(recorded(path.stem)), local) for path in RECORDED]
    assert max(len(text) for text in texts) <= 2048
    assert max(len(line) for text in texts for line in text.split("\r\n")) <= 1000


def test_no_feedback_and_no_extension_but_mid_is_answered() -> None:
    text = recorded("pipecat-chromium")
    lines = replied(text)
    for word in ("transport-cc", "nack", "rtcp-fb", "ssrc-audio-level"):
        assert word in text
        assert word not in "".join(lines)
    assert [line for line in lines if line.startswith("a=extmap")] == [
        "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid"
    ]


def test_stereo_ptime_and_bit_rate_of_the_offer_are_ignored() -> None:
    text = recorded("native-sdk-renomination")
    assert "stereo=1" in text
    assert "a=ptime:60" in text
    lines = replied(text)
    assert [line for line in lines if line.startswith("a=fmtp")] == [
        "a=fmtp:111 minptime=10;useinbandfec=1"
    ]
    assert not [line for line in lines if "ptime:" in line or "stereo" in line]


def test_candidates_are_told_whole_at_once() -> None:
    lines = replied(recorded("chromium-no-candidates"))
    assert lines.count("a=ice-options:ice2") == 1
    assert lines.count("a=end-of-candidates") == 1
    assert not [line for line in lines if "trickle" in line]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_another_stack_reads_the_answer(path: Path) -> None:
    offer = parse_offer(recorded(path.stem))
    read = SessionDescription.parse(answer(offer, LOCAL))
    audio = read.media[offer.audio.index]
    assert audio.rtp.muxId == offer.audio.mid
    assert audio.rtp.codecs[0].mimeType == "audio/opus"
    assert audio.rtp.codecs[0].payloadType == offer.audio.payload_type
    assert audio.ice is not None
    assert audio.ice.usernameFragment == LOCAL.ufrag
    assert audio.dtls is not None
    assert audio.dtls.role == "server"
    assert audio.port == 3478
    first = offer.accepted[0].index
    assert [c.ip for c in read.media[first].ice_candidates] == ["2001:db8::10", "203.0.113.10"]
    assert [group.items[0] for group in read.group] == [offer.sections[first].mid][
        : len(offer.bundle)
    ]


def test_rejected_sections_have_port_0_and_leave_the_bundle() -> None:
    lines = replied(recorded("chromium-two-videos"))
    assert "a=group:BUNDLE 0 3" in lines
    for number, mid in ((1, "1"), (2, "2")):
        assert section(lines, number) == [
            "m=video 0 UDP/TLS/RTP/SAVPF 96",
            "c=IN IP4 0.0.0.0",
            "a=inactive",
            f"a=mid:{mid}",
            f"a=ice-ufrag:{LOCAL.ufrag}",
            f"a=ice-pwd:{LOCAL.pwd}",
            f"a=fingerprint:{LOCAL.fingerprint}",
            "a=setup:passive",
        ]


def test_candidates_stand_in_the_first_accepted_section_of_the_bundle() -> None:
    """Whatever the order of the sections is (RFC 8843 section 7.3)."""
    at = SMALL.index("m=application")
    turned = SMALL[: SMALL.index("m=audio")] + SMALL[at:] + SMALL[SMALL.index("m=audio") : at]
    for text, group, first in (
        (turned, "0 1", 1),
        (turned.replace("BUNDLE 0 1", "BUNDLE 1 0"), "1 0", 0),
        (small(("BUNDLE 0 1", "BUNDLE 1 0")), "1 0", 1),
    ):
        lines = replied(text)
        assert f"a=group:BUNDLE {group}" in lines
        assert "a=end-of-candidates" in section(lines, first)
        assert "a=end-of-candidates" not in section(lines, 1 - first)
    video_first = replied(recorded("chromium-video-first"))
    assert "a=group:BUNDLE 1" in video_first
    assert "a=end-of-candidates" in section(video_first, 1)


@pytest.mark.parametrize(
    ("offered", "answered", "sends"),
    [
        ("sendrecv", "sendrecv", True),
        ("recvonly", "sendonly", True),
        ("sendonly", "recvonly", False),
        ("inactive", "inactive", False),
    ],
)
def test_directions_are_mirrored(offered: str, answered: str, sends: bool) -> None:
    lines = replied(small(("a=sendrecv", f"a={offered}")))
    assert f"a={answered}" in lines
    assert any(line.startswith("a=ssrc:") for line in lines) == sends
    assert any(line.startswith("a=msid:") for line in lines) == sends


@pytest.mark.parametrize(
    ("offered", "answered"),
    [("actpass", "passive"), ("active", "passive"), ("passive", "active")],
)
def test_setup(offered: str, answered: str) -> None:
    text = small(("a=setup:actpass", f"a=setup:{offered}"))
    assert setup_of(parse_offer(text)) is Setup(answered)
    assert replied(text).count(f"a=setup:{answered}") == 2


def test_without_bundle_there_is_one_section_and_no_group() -> None:
    lines = replied(small(("a=group:BUNDLE 0 1\n", ""), ("a=mid:0\n", "")))
    assert not [line for line in lines if "BUNDLE" in line or line == "a=mid:0"]
    assert section(lines, 1)[0] == "m=application 0 UDP/DTLS/SCTP webrtc-datachannel"


def test_the_mid_extension_and_rtcp_mux_only_if_offered() -> None:
    lines = replied(small(("a=rtcp-mux", "a=extmap:9 urn:ietf:params:rtp-hdrext:sdes:mid")))
    assert "a=extmap:9 urn:ietf:params:rtp-hdrext:sdes:mid" in lines
    assert "a=rtcp-mux" not in lines


def test_the_old_form_of_a_data_channel_is_answered_in_kind() -> None:
    lines = replied(recorded("old-sctpmap"))
    assert "m=application 3478 DTLS/SCTP 5000" in lines
    assert "a=sctpmap:5000 webrtc-datachannel 65535" in lines
    assert not [line for line in lines if line.startswith("a=sctp-port")]


@pytest.mark.parametrize(
    ("candidates", "connection", "hosts"),
    [
        ((("203.0.113.10", 3478),), "c=IN IP4 203.0.113.10", ["203.0.113.10"]),
        ((("2001:db8::10", 3479),), "c=IN IP6 2001:db8::10", ["2001:db8::10"]),
        (
            (("2001:db8::10", 3479), ("203.0.113.10", 3478)),
            "c=IN IP4 203.0.113.10",
            ["2001:db8::10", "203.0.113.10"],
        ),
    ],
)
def test_one_candidate_per_family(
    candidates: tuple[tuple[str, int], ...], connection: str, hosts: list[str]
) -> None:
    lines = replied(SMALL, dataclasses.replace(LOCAL, candidates=candidates))
    assert lines.count(connection) == 2
    offered = [line.split() for line in lines if line.startswith("a=candidate:")]
    assert [words[4] for words in offered] == hosts
    priorities = [int(words[3]) for words in offered]
    assert priorities == sorted(priorities, reverse=True)


@pytest.mark.parametrize(
    "candidates", [(), (("203.0.113.10", 3478), ("203.0.113.11", 3478))], ids=["none", "two_of_one"]
)
def test_other_numbers_of_candidates_are_a_fault_of_ours(
    candidates: tuple[tuple[str, int], ...],
) -> None:
    with pytest.raises(ValueError, match="one per address family"):
        replied(SMALL, dataclasses.replace(LOCAL, candidates=candidates))


def test_the_password_is_not_in_the_repr() -> None:
    assert LOCAL.pwd not in repr(LOCAL)
