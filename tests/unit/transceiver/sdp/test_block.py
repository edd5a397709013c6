"""Text to blocks: sizes are strict, foreign lines are not."""

import pytest

from transceiver.sdp.block import MAX_LINE, MAX_SECTIONS, MAX_SIZE, split
from transceiver.sdp.error import Reason, SdpError

TEXT = """\
v=0
o=- 1 1 IN IP4 0.0.0.0
a=ice-lite
a=group:BUNDLE 0
m=Audio 9/2 UDP/TLS/RTP/SAVPF 111  0
b=AS:64
a=MID:0
a=rtpmap:111 opus/48000/2
a=rtpmap:0 PCMU/8000
m=video 0 UDP/TLS/RTP/SAVPF 96
"""


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), "\n" + TEXT.rstrip()])
def test_sections_own_the_attributes_behind_their_m_line(text: str) -> None:
    session, (audio, video) = split(text)
    assert session.has("ice-lite")
    assert session.first("ice-lite") == ""
    assert session.all("group") == ["BUNDLE 0"]
    assert (audio.kind, audio.port, audio.protocol) == ("audio", 9, "UDP/TLS/RTP/SAVPF")
    assert audio.formats == ["111", "0"]
    assert audio.first("mid") == "0"
    assert audio.all("rtpmap") == ["111 opus/48000/2", "0 PCMU/8000"]
    assert not audio.has("ice-lite")
    assert (video.port, video.first("mid"), video.all("rtpmap")) == (0, None, [])


@pytest.mark.parametrize(
    "line",
    [
        "",
        "no type",
        "a=",
        "a=candidate:",
        "a=candidate:1 1 udp zero nowhere x typ none",
        "x=1",
        "\x00",
        "a=\u2028m=audio 9 x 0",
    ],
)
def test_odd_lines_are_passed_over(line: str) -> None:
    _, sections = split(TEXT + line + "\n")
    assert len(sections) == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("", "want the line `v=0`", id="empty"),
        pytest.param('{"sdp": "v=0"}', "send the raw offer", id="json"),
        pytest.param("v=0\\r\\ns=-", "want the line `v=0`", id="escaped"),
        pytest.param("v=0\n" + "x" * MAX_SIZE, f"at most {MAX_SIZE}", id="long_text"),
        pytest.param("v=0\na=" + "x" * MAX_LINE, "line 2 has 4098", id="long_line"),
        pytest.param("v=0\nm=audio 9 x 0\n" * 1 + "m=audio", "line 3: `m=audio`", id="bare_m"),
        pytest.param("v=0\nm=audio 65536 x 0", "line 2:", id="port"),
        pytest.param("v=0\nm=audio nine x 0", "line 2:", id="port_text"),
        pytest.param("v=0\nm=audio \u0669 x 0", "line 2:", id="port_arabic"),
        pytest.param("v=0\nm=audio 9 x", "line 2:", id="no_format"),
        pytest.param("v=0\nm=audio 9 x " + "y" * 33, "line 2:", id="long_format"),
        pytest.param(
            "v=0\n" + "m=audio 9 x 0\n" * (MAX_SECTIONS + 1), "line 34 is m-line 33", id="sections"
        ),
    ],
)
def test_what_cannot_be_read_is_named(text: str, says: str) -> None:
    with pytest.raises(SdpError) as caught:
        split(text)
    assert caught.value.reason is Reason.BAD_SDP
    assert says in caught.value.detail


def test_the_longest_text_and_line_are_read() -> None:
    assert split("v=0\na=" + "x" * (MAX_LINE - 2))[0].has("x" * (MAX_LINE - 2))
    _, sections = split("v=0\n" + "m=audio 9 x 0\n" * MAX_SECTIONS)
    assert len(sections) == MAX_SECTIONS
