"""Offers that are none, and HTTP that is none: refused with a reason, with nothing left behind."""

import contextlib
import json
import random
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.clients import sdp
from tests.clients.ice import Credentials
from tests.lab import http
from tests.lab.deployment import Deployment, deploy

SEED = 22
MUTATIONS = 120
JSON, SDP = "application/json", "application/sdp"

GOOD = sdp.offer(
    sdp.Local(
        ice=Credentials("abcdefgh", "abcdefghijklmnopqrstuvwx"),
        fingerprint="sha-256 " + ":".join(["AB"] * 32),
        ssrc=1234,
        address=("10.1.0.2", 40000),
        channel=True,
    )
)


def without(name: str) -> str:
    return "".join(line for line in GOOD.splitlines(keepends=True) if not line.startswith(name))


def instead(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


BAD_OFFERS: dict[str, str | bytes] = {
    "nothing": "",
    "blanks": " \r\n\r\n ",
    "one letter": "v",
    "no media": "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n",
    "HTML": "<!DOCTYPE html><html></html>",
    "JSON": json.dumps({"sdp": GOOD, "type": "offer"}),
    "zero bytes": b"v=0\r\n\x00m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n",
    "no UTF-8": b"v=0\r\nm=\xff\xfe\r\n",
    "UTF-16": GOOD.encode("utf-16"),
    "a byte order mark": "\ufeff" + GOOD,
    "noise": random.Random(SEED).randbytes(900),
    "version 1": instead("v=0", "v=1"),
    "half an m-line": instead("m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=audio"),
    "port of 99999": instead("m=audio 9 ", "m=audio 99999 "),
    "negative port": instead("m=audio 9 ", "m=audio -1 "),
    "port of thirds": instead("m=audio 9 ", "m=audio \u2153 "),
    "rejected audio": instead("m=audio 9 ", "m=audio 0 ").replace("a=group:BUNDLE 0 1\r\n", ""),
    "only video": instead("m=audio", "m=video"),
    "plain RTP": instead("UDP/TLS/RTP/SAVPF", "RTP/AVP"),
    "no Opus": instead("opus/48000/2", "PCMU/8000"),
    "Opus of another format": instead("a=rtpmap:111", "a=rtpmap:112"),
    "no ufrag": without("a=ice-ufrag"),
    "no password": without("a=ice-pwd"),
    "short ufrag": instead("a=ice-ufrag:abcdefgh", "a=ice-ufrag:abc"),
    "endless ufrag": instead("a=ice-ufrag:abcdefgh", "a=ice-ufrag:" + "a" * 257),
    "ufrag with a colon": instead("a=ice-ufrag:abcdefgh", "a=ice-ufrag:abcd:fgh"),
    "short password": instead("a=ice-pwd:abcdefghijklmnopqrstuvwx", "a=ice-pwd:abcdefgh"),
    "no fingerprint": without("a=fingerprint"),
    "half a fingerprint": instead("AB:" * 16, ""),
    "sha-1": instead("sha-256", "sha-1"),
    "ICE-lite": instead("s=-", "s=-\r\na=ice-lite"),
    "the same mid twice": instead("a=mid:1", "a=mid:0"),
    "mid with a blank": instead("a=mid:0", "a=mid:a b"),
    "sctp-port as a word": instead("a=sctp-port:5000", "a=sctp-port:five"),
    "sctp-port of 70000": instead("a=sctp-port:5000", "a=sctp-port:70000"),
    "message size below 0": instead("a=max-message-size:262144", "a=max-message-size:-1"),
    "too many sections": GOOD + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n" * 40,
    "an endless line": GOOD + "a=x:" + "y" * 5000 + "\r\n",
    "64 KiB and more": GOOD + "a=x\r\n" * 14000,
}
SURROGATES = {  # JSON can hold what UTF-8 cannot
    "mid": instead("a=mid:0", "a=mid:\ud800"),
    "sctp-port": instead("a=sctp-port:5000", "a=sctp-port:\udfff"),
    "elsewhere": GOOD + "a=x:\ud83d\r\n",
    "begin": "\ud800",
}
BAD_BODIES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "null": b"null",
    "no sdp": b'{"type": "offer"}',
    "sdp is a number": b'{"type": "offer", "sdp": 1}',
    "an answer": json.dumps({"type": "answer", "sdp": GOOD}).encode(),
    "nested too deep": b"[" * 50_000,
    "an endless number": b'{"type": "offer", "sdp": ' + b"9" * 20_000 + b"}",
    "no UTF-8": b'{"type": "offer", "sdp": "\xff"}',
    "too much": b" " * 70_000 + b"{}",
}
BAD_IDS = (
    "rtc_",
    "rtc_x_y",
    "rtc_" + "A" * 24 + "_" + "B" * 22,
    "rtc_" + "A" * 24 + "_" + "B" * 22 + "%0a",
    "%00",
    "%ff%fe",
    "..%2f..%2fetc%2fpasswd",
    "a" * 4000,
    "\u0660" * 10,
)


@dataclass(frozen=True)
class Caller:
    """HTTP from the client's node to signaling."""

    deployment: Deployment

    def ask(
        self, method: str, path: str, body: bytes | str = b"", kind: str = SDP
    ) -> httpx.Response:
        url = f"{self.deployment.site.base_url}{path}"

        def send() -> httpx.Response:
            with httpx.Client(trust_env=False) as client:
                return client.request(
                    method, url, content=body, headers={b"Content-Type": kind.encode()}
                )

        return self.deployment.site.client.call(send)

    def offer(self, body: bytes | str) -> httpx.Response:
        return self.ask("POST", "/v1/realtime/calls", body)

    def json_offer(self, text: str) -> httpx.Response:
        return self.ask("POST", "/offer", json.dumps({"type": "offer", "sdp": text}), JSON)


@pytest.fixture(scope="module")
def deployment(lab_prefix: str) -> Iterator[Deployment]:
    with deploy("socket", lab_prefix, echo="opus") as deployment:
        yield deployment


@pytest.fixture
def caller(deployment: Deployment) -> Iterator[Caller]:
    """In the end the transceiver has to be as it was."""
    services, site = deployment.services, deployment.site
    pids = services.transceiver.pid, services.signaling.pid
    yield Caller(deployment)
    ready = http.request(site.transceiver, f"{site.transceiver_url}/readyz")
    assert ready.json() == {"ready": True, "calls": 0, "capacity": 40}
    assert http.request(site.signaling, f"{site.base_url}/readyz").status == 200
    assert services.transceiver.running
    assert services.signaling.running
    assert pids == (services.transceiver.pid, services.signaling.pid)
    assert "Traceback" not in services.signaling.tail() + services.transceiver.tail()


def expect_refusal(answer: httpx.Response) -> None:
    assert 400 <= answer.status_code < 500, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["code"]
    assert error["message"]


@pytest.mark.parametrize("name", BAD_OFFERS)
def test_a_bad_offer(caller: Caller, name: str) -> None:
    offer = BAD_OFFERS[name]
    expect_refusal(caller.offer(offer))
    if isinstance(offer, str):
        expect_refusal(caller.json_offer(offer))


ODD_OFFERS = {
    "only mDNS": instead("10.1.0.2 40000", "8a4e.local 40000"),
    "no candidate": without("a=candidate"),
    "nonsense for a candidate": instead("a=candidate:1 1 udp", "a=candidate:\u2603 x"),
    "a TURN candidate of ours": instead("10.1.0.2 40000 typ host", "127.0.0.1 1 typ relay"),
    "loopback in c=": instead("c=IN IP4 0.0.0.0", "c=IN IP4 127.0.0.1"),
    "end of candidates": GOOD + "a=end-of-candidates\r\n",
    "attributes nobody knows": GOOD + "a=x-y:z\r\na=\r\na\r\nfoo\r\n" * 20,
    "bare line feeds": GOOD.replace("\r\n", "\n"),
}


@pytest.mark.parametrize("name", ODD_OFFERS)
def test_an_odd_offer_that_is_good_enough(caller: Caller, name: str) -> None:
    """Client candidates are not read, let alone resolved: the answer takes no time."""
    answer = caller.offer(ODD_OFFERS[name])
    assert answer.status_code == 201, answer.text
    assert answer.elapsed.total_seconds() < 0.5
    assert caller.ask("DELETE", answer.headers["location"]).status_code == 204


@pytest.mark.parametrize("name", SURROGATES)
def test_a_character_that_is_none(caller: Caller, name: str) -> None:
    expect_refusal(caller.json_offer(SURROGATES[name]))


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_bad_body(caller: Caller, name: str) -> None:
    expect_refusal(caller.ask("POST", "/offer", BAD_BODIES[name], JSON))


@pytest.mark.parametrize("kind", ["", "text/plain", "application/sdp2", "\xe4", "a" * 3000])
def test_a_wrong_content_type(caller: Caller, kind: str) -> None:
    expect_refusal(caller.ask("POST", "/v1/realtime/calls", GOOD, kind))
    expect_refusal(caller.ask("POST", "/offer", json.dumps({"type": "offer", "sdp": GOOD}), kind))


@pytest.mark.parametrize("id", BAD_IDS)
def test_a_call_that_is_none(caller: Caller, id: str) -> None:
    for method, path in (
        ("GET", f"/v1/realtime/calls/{id}"),
        ("GET", f"/v1/realtime/calls/{id}/path"),
        ("DELETE", f"/v1/realtime/calls/{id}"),
        ("POST", f"/v1/realtime/calls/{id}/hangup"),
        ("POST", f"/v1/realtime/calls/{id}"),
    ):
        expect_refusal(caller.ask(method, path, GOOD))


def test_mutated_offers(caller: Caller) -> None:
    """Some are good enough for a call; the others are refused, and none is our fault."""
    source = random.Random(SEED)
    seen = set()
    for _ in range(MUTATIONS):
        answer = caller.offer(mutated(source))
        seen.add(answer.status_code)
        if answer.status_code == 201:
            caller.ask("DELETE", answer.headers["location"])
        else:
            expect_refusal(answer)
    assert {201, 400} <= seen


def mutated(source: random.Random) -> bytes:
    """The good offer with bytes overwritten, cut off, or lines gone, doubled, or in disorder."""

    def bytes_changed() -> bytes:
        data = bytearray(GOOD.encode())
        for _ in range(source.randrange(1, 12)):
            data[source.randrange(len(data))] = source.randrange(256)
        return bytes(data)

    def lines_changed() -> bytes:
        lines = GOOD.splitlines(keepends=True)
        for _ in range(source.randrange(1, 6)):
            at = source.randrange(1, len(lines))
            match source.choice(("gone", "doubled", "moved")):
                case "gone":
                    del lines[at]
                case "doubled":
                    lines.insert(at, lines[at])
                case _:
                    lines.insert(source.randrange(1, len(lines)), lines.pop(at))
        return "".join(lines).encode()

    def cut() -> bytes:
        return GOOD.encode()[: source.randrange(len(GOOD))]

    return source.choice((bytes_changed, lines_changed, cut))()


@pytest.mark.parametrize("service", ["relay", "transceiver", "signaling"])
def test_noise_on_an_http_port(caller: Caller, service: str) -> None:
    site, source = caller.deployment.site, random.Random(SEED)
    node, where = {
        "relay": (site.relay, site.relay_admin),
        "transceiver": (site.transceiver, site.endpoint),
        "signaling": (site.client, site.signaling_address),
    }[service]
    for text in (
        source.randbytes(2000),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + source.randbytes(300),
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET " + b"/" * 100_000,
        b"POST /offer HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST /offer HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        b"POST /offer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 30_000 + b"\r\n",
        b"GET /v1/flows/%zz?vip=%ff HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"GET /v1/flows/1.2.3.4:5?vip=-1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    ):
        with node.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.settimeout(2)
            sock.connect(where)
            answer = b""
            with contextlib.suppress(OSError):
                sock.sendall(text)
                sock.shutdown(socket.SHUT_WR)
                answer = sock.recv(64)
        assert not answer.startswith(b"HTTP/1.1 5"), text[:80]
    health = http.request(node, f"http://{where[0]}:{where[1]}/healthz")
    assert health.status == 200
