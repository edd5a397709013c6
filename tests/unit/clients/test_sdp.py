import pytest
from aiortc.sdp import SessionDescription

from tests.clients.ice import Credentials
from tests.clients.sdp import AnswerError, Local, offer, read_answer

LOCAL = Local(
    Credentials("abcd", "p" * 24), "sha-256 AA:BB", 1234, ("10.1.0.2", 5000), channel=True
)
ANSWER = """v=0
o=- 1 1 IN IP4 0.0.0.0
s=-
t=0 0
m=audio 3478 UDP/TLS/RTP/SAVPF 109
a=rtpmap:109 opus/48000/2
a=candidate:1 1 udp 2130706431 203.0.113.10 3478 typ host
a=ice-ufrag:IWwJ+/iUTKZerg88cJwZO0e0
a=ice-pwd:secret
a=fingerprint:sha-256 AA:BB
a=setup:passive
"""


@pytest.mark.parametrize("channel", [True, False])
def test_an_offer_that_others_understand(channel: bool) -> None:
    local = Local(LOCAL.ice, LOCAL.fingerprint, LOCAL.ssrc, LOCAL.address, channel)
    parsed = SessionDescription.parse(offer(local))
    assert [media.kind for media in parsed.media] == ["audio", "application"][: 1 + channel]
    audio = parsed.media[0]
    assert audio.ice is not None
    assert audio.ice.usernameFragment == "abcd"
    assert audio.rtp.codecs[0].mimeType == "audio/opus"
    assert audio.ssrc[0].ssrc == 1234


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_read_answer(end: str) -> None:
    answer = read_answer(ANSWER.replace("\n", end))
    assert answer.ice == Credentials("IWwJ+/iUTKZerg88cJwZO0e0", "secret")
    assert answer.address == ("203.0.113.10", 3478)
    assert answer.payload_type == 109
    assert answer.setup == "passive"
    assert answer.fingerprint == ("sha-256", "AA:BB")
    assert answer.sctp_port is None


def test_an_answer_that_lacks_something() -> None:
    with pytest.raises(AnswerError, match="candidate"):
        read_answer(ANSWER.replace("a=candidate", "a=no"))
