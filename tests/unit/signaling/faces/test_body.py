from collections.abc import AsyncIterator

import pytest

from signaling.faces.body import MAX_BODY
from tests.unit.signaling.fake_transceiver import OFFER, FakeTransceiver, signaling

pytestmark = pytest.mark.anyio
CALLS = "/v1/realtime/calls"


@pytest.mark.parametrize(
    "content_type", ["application/sdp", "Application/SDP", "application/sdp; charset=utf-8"]
)
async def test_content_types_that_are_taken(content_type: str) -> None:
    _, client = await signaling(FakeTransceiver())
    headers = {"Content-Type": content_type}
    assert (await client.post(CALLS, content=OFFER, headers=headers)).status_code == 201


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/json", "multipart/x"])
async def test_content_types_that_are_not(content_type: str) -> None:
    _, client = await signaling(FakeTransceiver())
    reply = await client.post(CALLS, content=OFFER, headers={"Content-Type": content_type})
    assert reply.status_code == 415
    message = reply.json()["error"]["message"]
    assert message.endswith("send application/sdp or multipart/form-data")
    reply = await client.post(f"{CALLS}/x", content=OFFER, headers={"Content-Type": content_type})
    assert reply.json()["error"]["message"].endswith("send application/sdp")


def offer_of(size: int) -> bytes:
    return (OFFER + "a=x:").encode().ljust(size, b"x")


async def test_the_largest_body_is_taken() -> None:
    _, client = await signaling(FakeTransceiver())
    headers = {"Content-Type": "application/sdp"}
    reply = await client.post(CALLS, content=offer_of(MAX_BODY), headers=headers)
    assert reply.status_code == 201


@pytest.mark.parametrize("path", [CALLS, f"{CALLS}/x"])
async def test_a_larger_one_is_not(path: str) -> None:
    _, client = await signaling(FakeTransceiver())
    headers = {"Content-Type": "application/sdp"}
    reply = await client.post(path, content=offer_of(MAX_BODY + 1), headers=headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "body_too_large")


async def test_a_body_that_does_not_tell_its_size_is_cut_off() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 8192
            yield bytes(8192)

    _, client = await signaling(FakeTransceiver())
    headers = {"Content-Type": "application/sdp"}
    assert (await client.post(CALLS, content=endless(), headers=headers)).status_code == 413
    assert sent <= MAX_BODY + 2 * 8192
