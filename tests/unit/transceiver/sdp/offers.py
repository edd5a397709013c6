"""Offers to begin with: recorded ones, and a small one whose lines a test can change."""

from pathlib import Path

RECORDED = sorted((Path(__file__).parents[3] / "vectors" / "sdp").glob("*.sdp"))
FINGERPRINT = ":".join(["AB"] * 32)

SMALL = f"""\
v=0
o=- 1 1 IN IP4 0.0.0.0
s=-
t=0 0
a=group:BUNDLE 0 1
m=audio 9 UDP/TLS/RTP/SAVPF 111 8
a=mid:0
a=sendrecv
a=rtcp-mux
a=rtpmap:111 opus/48000/2
a=ice-ufrag:abcd
a=ice-pwd:{"p" * 22}
a=fingerprint:sha-256 {FINGERPRINT}
a=setup:actpass
m=application 9 UDP/DTLS/SCTP webrtc-datachannel
a=mid:1
a=sctp-port:5000
"""


def recorded(name: str) -> str:
    """With its CRLF line ends."""
    return next(path for path in RECORDED if path.stem == name).read_bytes().decode()


def small(*changes: tuple[str, str]) -> str:
    """`SMALL` with each `old` line (or part) replaced by `new`; an empty `new` leaves it out."""
    text = SMALL
    for old, new in changes:
        assert old in text, f"no {old!r} to change"
        text = text.replace(old, new)
    return text.replace("\n\n", "\n")
