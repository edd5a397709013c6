"""The SDP of test clients: write an offer, read an answer. Pure."""

import re
from dataclasses import dataclass

from relayctl.wire.address import Address
from tests.clients.ice import Credentials

OPUS = 111  # payload type


class AnswerError(ValueError):
    """The answer lacks something that a call needs."""


@dataclass(frozen=True, slots=True)
class Local:
    ice: Credentials
    fingerprint: str  # "sha-256 AB:CD:…"
    ssrc: int
    address: Address
    channel: bool  # offer a data channel
    version: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    ice: Credentials
    fingerprint: tuple[str, str]  # algorithm, value
    setup: str
    address: Address
    payload_type: int
    sctp_port: int | None


def offer(local: Local) -> str:
    host, port = local.address
    transport = [
        f"a=ice-ufrag:{local.ice.ufrag}",
        f"a=ice-pwd:{local.ice.pwd}",
        "a=ice-options:trickle",
        f"a=fingerprint:{local.fingerprint}",
        "a=setup:actpass",
    ]
    lines = [
        "v=0",
        f"o=- {local.ssrc} {local.version} IN IP4 127.0.0.1",
        "s=-",
        "t=0 0",
        f"a=group:BUNDLE {'0 1' if local.channel else '0'}",
        f"m=audio 9 UDP/TLS/RTP/SAVPF {OPUS}",
        "c=IN IP4 0.0.0.0",
        "a=mid:0",
        "a=sendrecv",
        "a=rtcp-mux",
        f"a=rtpmap:{OPUS} opus/48000/2",
        f"a=fmtp:{OPUS} minptime=10;useinbandfec=1",
        f"a=ssrc:{local.ssrc} cname:lean",
        f"a=candidate:1 1 udp 2130706431 {host} {port} typ host",
        *transport,
    ]
    if local.channel:
        lines += [
            "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
            "c=IN IP4 0.0.0.0",
            "a=mid:1",
            "a=sctp-port:5000",
            "a=max-message-size:262144",
            *transport,
        ]
    return "\r\n".join(lines) + "\r\n"


def read_answer(text: str) -> Answer:
    """Raises `AnswerError`."""

    def one(pattern: str) -> re.Match[str]:
        match = re.search(rf"^{pattern}\r?$", text, re.MULTILINE)
        if match is None:
            raise AnswerError(f"no line like {pattern!r} in the answer")
        return match

    candidate = one(r"a=candidate:\S+ 1 udp \d+ (\S+) (\d+) typ host.*")
    fingerprint = one(r"a=fingerprint:(\S+) (\S+)")
    port = re.search(r"^a=sctp-port:(\d+)", text, re.MULTILINE)
    return Answer(
        ice=Credentials(one(r"a=ice-ufrag:(\S+)")[1], one(r"a=ice-pwd:(\S+)")[1]),
        fingerprint=(fingerprint[1], fingerprint[2]),
        setup=one(r"a=setup:(\S+)")[1],
        address=(candidate[1], int(candidate[2])),
        payload_type=int(one(r"a=rtpmap:(\d+) opus/48000/2")[1]),
        sctp_port=int(port[1]) if port else None,
    )
