import json

import pytest

from relayctl.wire.call_id import parse
from signaling.faces.json_offer import read_json_offer
from signaling.refusal import Refused
from tests.unit.signaling.fake_transceiver import ANSWER, OFFER, FakeTransceiver, signaling


@pytest.mark.anyio
async def test_an_offer_as_aiortc_posts_it() -> None:
    fake = FakeTransceiver()
    _, client = await signaling(fake)
    reply = await client.post("/offer", json={"sdp": OFFER, "type": "offer"})
    assert reply.status_code == 200
    values = reply.json()
    assert (values["sdp"], values["type"]) == (ANSWER, "answer")
    assert parse(values["id"]).render() in fake.ids
    assert fake.seen[0][2]["dialect"] == "plain"
    assert (await client.delete(f"/v1/realtime/calls/{values['id']}")).status_code == 204


@pytest.mark.anyio
async def test_it_has_to_be_json() -> None:
    _, client = await signaling(FakeTransceiver())
    reply = await client.post("/offer", content=OFFER, headers={"Content-Type": "application/sdp"})
    assert reply.status_code == 415


def test_members_beyond_the_two_do_no_harm() -> None:
    body = json.dumps({"sdp": OFFER, "type": "offer", "video_transform": "none"}).encode()
    assert read_json_offer(body) == OFFER


@pytest.mark.parametrize(
    ("body", "param", "message"),
    [
        (b"", None, "no JSON"),
        (b"\xff", None, "no JSON"),
        (b"[" * 60000, None, "no JSON"),
        (b"[]", None, "an object"),
        (b'{"sdp": "v=0"}', "type", 'type has to be "offer"'),
        (b'{"sdp": "v=0", "type": "answer"}', "type", 'type has to be "offer"'),
        (b'{"type": "offer"}', "sdp", "sdp has to be text"),
        (b'{"type": "offer", "sdp": null}', "sdp", "sdp has to be text"),
        (b'{"type": "offer", "sdp": ""}', "sdp", "empty"),
    ],
)
def test_refuses_with_a_reason(body: bytes, param: str | None, message: str) -> None:
    with pytest.raises(Refused, match=message) as caught:
        read_json_offer(body)
    assert (caught.value.status, caught.value.param) == (400, param)
