import http
import logging
from collections.abc import Awaitable, Callable

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from relayctl.wire.call_id import CallId, parse
from signaling.fleet.control import Unreachable
from signaling.refusal import Refused
from signaling.sidebands import Sidebands
from tests.unit.signaling.conformance import IN_CALL
from tests.unit.signaling.fake_transceiver import CONTROL_TOKEN, SECRET

pytestmark = pytest.mark.anyio
CALL: CallId = parse(IN_CALL)
Answer = Callable[[ServerConnection, Request], Response | None]


async def opened(answer: Answer, use: Callable[[int], Awaitable[None]]) -> None:
    async def echo(socket: ServerConnection) -> None:
        async for message in socket:
            await socket.send(message)

    async with serve(echo, "127.0.0.1", 0, process_request=answer) as server:
        await use(server.sockets[0].getsockname()[1])


async def test_follows_a_call_with_the_token_on_behalf_of_its_subject(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[Request] = []

    def take(socket: ServerConnection, request: Request) -> None:
        seen.append(request)

    async def use(port: int) -> None:
        sidebands = Sidebands(CONTROL_TOKEN)
        for subject in ("me & you", ""):
            socket = await sidebands.open(("127.0.0.1", port), CALL, "realtime-beta", subject)
            await socket.send("x")
            assert await socket.recv() == "x"
            await socket.close()

    await opened(take, use)
    path = f"/v1/calls/{IN_CALL}/events?dialect=realtime-beta"
    assert [request.path for request in seen] == [f"{path}&subject=me+%26+you", path]
    assert seen[0].headers["Authorization"] == f"Bearer {CONTROL_TOKEN}"
    ours = [record.getMessage() for record in caplog.records if record.name == "sidebands"]
    assert ours == []


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (404, '{"error": {"message": "no call rtc_x"}}', "call_not_found", "no call rtc_x"),
        (410, '{"error": {"message": 5}}', "call_ended", "the call has ended"),
        (429, "nonsense", "too_many_sidebands", "the call has enough sidebands"),
        (401, "{}", "transceiver_error", "answered 401 to a sideband"),
        (307, "", "transceiver_error", "answered 307 to a sideband"),
        (404, "[" * 100_000, "call_not_found", "there is no call"),
        (500, "[]", "transceiver_error", "answered 500 to a sideband"),
    ],
)
async def test_says_why_not(status: int, body: str, code: str, message: str) -> None:
    def refuse(socket: ServerConnection, request: Request) -> Response:
        headers = Headers(Location="ws://192.0.2.1/", Content_Length=str(len(body)))
        return Response(status, http.HTTPStatus(status).phrase, headers, body.encode())

    async def use(port: int) -> None:
        with pytest.raises(Refused, match=message) as caught:
            await Sidebands(CONTROL_TOKEN).open(("127.0.0.1", port), CALL, "realtime")
        assert caught.value.code == code
        assert (caught.value.retry_after_s is not None) is (status == 429)
        assert SECRET not in str(caught.value)

    await opened(refuse, use)


async def test_nobody_is_there() -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9") as caught:
        await Sidebands().open(("127.0.0.1", 9), CALL, "realtime")
    assert SECRET not in str(caught.value)
