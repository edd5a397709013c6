from typing import Any

import httpx
import pytest

from signaling.faces.sdp_fragment import SDP_FRAGMENT
from tests.unit.signaling.fake_transceiver import (
    ANSWER,
    CONFIG,
    OFFER,
    FakeTransceiver,
    error,
    signaling,
)

pytestmark = pytest.mark.anyio

SDP = {"Content-Type": "application/sdp"}
SERVERS = """
[[ice_server]]
urls = "stun:stun.example.net"
[[ice_server]]
urls = "turn:turn.example.net"
username = "user"
credential = "Pass-Word"
"""
CANDIDATE = "a=candidate:1 1 udp 2122260223 192.0.2.1 61764 typ host"
OLD = ("abcd", "clientPasswordThatIsSecret")
NEW = ("efgh", "anotherPasswordOfTheClient")


def fragment(credentials: tuple[str, str] | None, *lines: str) -> str:
    shown = [] if credentials is None else [f"a=ice-ufrag:{credentials[0]}"]
    if credentials is not None:
        shown.append(f"a=ice-pwd:{credentials[1]}")
    if lines:
        shown += ["m=audio 9 RTP/AVP 0", "a=mid:0", *lines]
    return "\r\n".join(shown) + "\r\n"


class Session:
    """A WHIP session with its fake."""

    def __init__(self, fake: FakeTransceiver, client: httpx.AsyncClient, url: str) -> None:
        self.fake = fake
        self.client = client
        self.url = url

    @classmethod
    async def begin(cls) -> "Session":
        answer = ANSWER + "a=ice-ufrag:ours\r\na=candidate:x\r\n"
        fake = FakeTransceiver(answer=answer)
        _, client = await signaling(fake)
        created = await client.post("/whip", content=OFFER, headers=SDP)
        return cls(fake, client, created.headers["location"])

    async def patch(self, text: str, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.patch(
            self.url, content=text, headers={"Content-Type": SDP_FRAGMENT, **named}
        )

    def asked(self) -> list[Any]:
        """What was asked for in restarts."""
        return [body for method, _, body in self.fake.seen if method == "restart"]


async def test_a_session_from_offer_to_delete() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake, config=CONFIG + SERVERS)
    reply = await client.post("/whip", content=OFFER, headers=SDP)
    assert (reply.status_code, reply.text) == (201, ANSWER)
    assert reply.headers["content-type"] == "application/sdp"
    assert reply.headers["etag"] == '"1"'
    assert reply.headers["accept-patch"] == SDP_FRAGMENT
    assert 'credential="Pass-Word"' in reply.headers["link"]
    assert reply.headers["x-ferryline-ingress"] == "relay-a"
    location = reply.headers["location"]
    assert location.removeprefix("/whip/") in fake.ids
    assert (fake.seen[0][2]["offer"], fake.seen[0][2]["dialect"]) == (OFFER, "plain")
    ended = await client.delete(location, headers={"If-Match": '"anything"'})
    assert (ended.status_code, ended.text) == (200, "")


async def test_candidates_are_taken_for_the_latest_answer_only() -> None:
    session = await Session.begin()
    text = fragment(OLD, CANDIDATE, "a=end-of-candidates")
    taken = await session.patch(text, If_Match='"1"')
    assert (taken.status_code, taken.content, taken.headers.get("etag")) == (204, b"", None)
    assert (await session.patch(text, If_Match='"0", "1"')).status_code == 204
    assert (await session.patch(text, ETag='"1"')).status_code == 204  # @eyevinn/whip-web-client
    assert (await session.patch(text, If_Match="*")).status_code == 204
    assert (await session.patch(fragment(None, CANDIDATE), If_Match='"1"')).status_code == 204
    assert (await session.patch(fragment(OLD), If_Match='"1"')).status_code == 204
    for old in ('"2"', 'W/"1"', "1", "null"):
        refused = await session.patch(text, If_Match=old)
        assert refused.status_code == 412
        assert refused.json()["error"]["code"] == "precondition_failed"
    missing = await session.patch(text)
    assert (missing.status_code, missing.json()["error"]["param"]) == (428, "If-Match")
    assert session.asked() == []


async def test_new_credentials_restart_ice() -> None:
    session = await Session.begin()
    reply = await session.patch(fragment(NEW), If_Match="*")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == SDP_FRAGMENT
    assert reply.headers["etag"] == '"2"'
    assert reply.text == (
        "a=ice-pwd:serverPasswordThatIsSecret\r\na=ice-ufrag:ours\r\n"
        "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=candidate:x\r\n"
    )
    assert session.asked() == [{"ice": {"ufrag": NEW[0], "pwd": NEW[1]}}]
    late = await session.patch(fragment(OLD, CANDIDATE), If_Match='"1"')
    assert late.status_code == 412  # of the credentials before
    assert (await session.patch(fragment(NEW, CANDIDATE), If_Match='"2"')).status_code == 204


async def test_a_restart_may_name_the_latest_answer() -> None:
    session = await Session.begin()
    assert (await session.patch(fragment(NEW, CANDIDATE), If_Match='"0"')).status_code == 412
    assert (await session.patch(fragment(NEW, CANDIDATE), If_Match='"1"')).status_code == 200


async def test_a_restart_whose_answer_was_lost_is_asked_for_again() -> None:
    session = await Session.begin()
    await session.patch(fragment(NEW), If_Match="*")
    assert (await session.patch(fragment(NEW), If_Match="*")).status_code == 200
    assert len(session.asked()) == 2


async def test_a_restart_that_cannot_be_leaves_the_session() -> None:
    session = await Session.begin()
    session.fake.refusals["restart"] = error(400, "no_ice", "`a=ice-pwd` of 3 characters")
    reply = await session.patch(fragment(("efgh", "pwd")), If_Match="*")
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "no_ice")
    assert (await session.patch(fragment(OLD, CANDIDATE), If_Match='"1"')).status_code == 204


async def test_bodies_that_are_no_fragments() -> None:
    session = await Session.begin()
    wrong = await session.patch(OFFER, If_Match="*", Content_Type="application/sdp")
    assert wrong.status_code == 415
    assert (await session.patch("nonsense", If_Match="*")).status_code == 400
    assert (await session.patch("a=x\r\n" * 8000, If_Match="*")).status_code == 413
    assert (await session.client.post("/whip", content=OFFER)).status_code == 415
    assert (await session.client.post("/whip", content="x", headers=SDP)).status_code == 400


async def test_sessions_that_are_over_or_never_were() -> None:
    session = await Session.begin()
    session.fake.state = "ended"
    assert (await session.patch(fragment(NEW), If_Match="*")).status_code == 410
    session.url = "/whip/rtc_nothing"
    assert (await session.patch(fragment(NEW), If_Match="*")).status_code == 404
    assert (await session.client.delete(session.url)).status_code == 404


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/whip", {"OPTIONS", "POST"}), ("/whip/x", {"DELETE", "OPTIONS", "PATCH"})],
)
async def test_other_methods_are_kept_for_later(path: str, allowed: set[str]) -> None:
    _, client = await signaling(FakeTransceiver())
    for method in {"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"} - allowed:
        reply = await client.request(method, path)
        assert reply.status_code == 405
        assert set(reply.headers["allow"].split(", ")) == allowed


async def test_options_tell_what_is_possible() -> None:
    _, client = await signaling(FakeTransceiver(), config=CONFIG + SERVERS)
    endpoint = await client.options("/whip")
    assert endpoint.status_code == 200
    assert endpoint.headers["accept-post"] == "application/sdp"
    assert "PATCH" in endpoint.headers["access-control-allow-methods"]
    assert endpoint.headers["link"] == '<stun:stun.example.net>; rel="ice-server"'
    of_call = await client.options("/whip/x")
    assert of_call.headers["accept-patch"] == SDP_FRAGMENT


async def test_a_browser_of_another_site_may_do_all_of_it() -> None:
    _, client = await signaling(FakeTransceiver())
    origin = {"Origin": "https://app.example"}
    preflight = await client.options(
        "/whip/x",
        headers={
            **origin,
            "Access-Control-Request-Method": "PATCH",
            "Access-Control-Request-Headers": "content-type, if-match, etag, authorization",
        },
    )
    assert preflight.status_code == 200
    assert "PATCH" in preflight.headers["access-control-allow-methods"]
    created = await client.post("/whip", content=OFFER, headers={**SDP, **origin})
    exposed = created.headers["access-control-expose-headers"].lower()
    assert {"location", "etag", "link", "accept-patch"} <= set(exposed.split(", "))
