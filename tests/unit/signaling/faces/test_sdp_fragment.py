import pytest

from signaling.faces.sdp_fragment import Fragment, fragment_of, read_fragment
from signaling.ice import MAX_CANDIDATES, Credentials
from signaling.refusal import Refused

CREDENTIALS = "a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\n"
MEDIA = "m=audio 9 RTP/AVP 0\r\na=mid:0\r\n"
CANDIDATE = "a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host ufrag EsAw\r\n"
END = "a=end-of-candidates\r\n"
ANSWER = (
    "v=0\r\no=- 1 2 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 1\r\n"
    "m=video 0 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\n"
    "m=audio 3478 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 203.0.113.10\r\na=mid:1\r\na=recvonly\r\n"
    "a=ice-ufrag:serverUfrag\r\na=ice-pwd:serverPassword\r\na=fingerprint:sha-256 AA\r\n"
    "a=candidate:1 1 udp 2130706431 203.0.113.10 3478 typ host\r\na=end-of-candidates\r\n"
    "m=application 3478 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:2\r\n"
    "a=ice-ufrag:serverUfrag\r\na=ice-pwd:serverPassword\r\n"
)


def test_the_example_of_the_rfc() -> None:
    """RFC 9725 section 4.3.2."""
    tcp = (
        "a=candidate:473322822 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active ufrag EsAw\r\n"
    )
    fragment = read_fragment((CREDENTIALS + MEDIA + CANDIDATE + tcp + END).encode())
    assert fragment == Fragment(
        Credentials("EsAw", "P2uYro0UCOQ4zxjKXaWCBui1"),
        (CANDIDATE[len("a=candidate:") : -2], tcp[len("a=candidate:") : -2]),
        ended=True,
    )


def test_a_restart_has_credentials_only() -> None:
    assert read_fragment(CREDENTIALS.encode()) == Fragment(
        Credentials("EsAw", "P2uYro0UCOQ4zxjKXaWCBui1"), (), ended=False
    )


def test_credentials_may_stand_in_each_section_or_nowhere() -> None:
    again = MEDIA + CREDENTIALS + CANDIDATE
    assert read_fragment((again + again).encode()).credentials is not None
    assert read_fragment((MEDIA + CANDIDATE).encode()).credentials is None


def test_other_lines_are_passed_over_and_line_ends_may_be_short() -> None:
    text = "v=0\r\ns=-\r\nt=0 0\r\na=ice-options:trickle ice2\r\na=ice-pacing:50\r\n\r\n"
    assert read_fragment((text + CREDENTIALS).replace("\r\n", "\n").encode()).credentials


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "no a= line"),
        (b"\xff", "byte 0 is not UTF-8"),
        (b"hello", "line 1 is not of the form"),
        (b"a=ice-options:trickle\r\n{}\r\n", "line 2 is not of the form"),
        (b"a=ice-options:\x00\r\n", "line 1 is not of the form"),
        (b"m=audio 9 RTP/AVP 0\r\n", "no a= line"),
        (b"a=ice-ufrag:abcd\r\n", "alone; send both"),
        (b"a=ice-pwd:abcd\r\n", "alone; send both"),
        (CREDENTIALS.encode() + b"a=ice-ufrag:other\r\n", "2 different a=ice-ufrag"),
        (CREDENTIALS.encode() + b"a=candidate:nonsense\r\n", "a candidate is none"),
        (CREDENTIALS.encode() + CANDIDATE.replace("EsAw", "old1").encode(), "ufrag 'old1'"),
        ((CREDENTIALS + CANDIDATE * (MAX_CANDIDATES + 1)).encode(), "at most 64"),
    ],
)
def test_refuses_with_a_reason(body: bytes, message: str) -> None:
    with pytest.raises(Refused, match=message) as caught:
        read_fragment(body)
    assert caught.value.status == 400
    assert "P2uYro" not in str(caught.value)


def test_the_answer_of_a_restart() -> None:
    assert fragment_of(ANSWER) == (
        "a=ice-ufrag:serverUfrag\r\na=ice-pwd:serverPassword\r\n"
        "m=audio 3478 UDP/TLS/RTP/SAVPF 111\r\na=mid:1\r\n"
        "a=candidate:1 1 udp 2130706431 203.0.113.10 3478 typ host\r\na=end-of-candidates\r\n"
    )


def test_what_is_written_can_be_read() -> None:
    fragment = read_fragment(fragment_of(ANSWER).encode())
    assert fragment.credentials == Credentials("serverUfrag", "serverPassword")
    assert (len(fragment.candidates), fragment.ended) == (1, True)
