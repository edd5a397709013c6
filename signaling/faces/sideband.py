"""`WS /v1/realtime?call_id=`: a server of the client's follows a call and takes part in it.

The call's owner is asked first, so whoever may not follow hears why in an HTTP answer. Messages are
handed on as they are, in both directions, one at a time: who does not read holds up nothing but
itself, and the transceiver lets it go. A WebSocket without a call is not served.
"""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any

from fastapi import APIRouter
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from signaling.calls import owner_gone
from signaling.faces.dialect import dialect_of
from signaling.fleet.control import Unreachable
from signaling.front import Front
from signaling.refusal import Code, Refused
from signaling.sidebands import Sidebands

FACE = "sideband"
SUBPROTOCOL = "realtime"
MAX_SIDEBANDS = 1000  # of this replica
MAX_MESSAGE = 1 << 20  # bytes, of a client; the server closes with 1009 above it
SEND_S = 8.0  # that a client may take for one message; after 10 its connection is cut
RETRY_S = 5

SLOW = 1008  # codes of a close, RFC 6455 section 7.4.1
LOST = 1011
_UNSPEAKABLE = (None, 1005, 1006, 1015)  # codes that no close can carry

log = logging.getLogger("signaling.sideband")


def routes(front: Front, sidebands: Sidebands) -> APIRouter:
    """`/v1/realtime` as a WebSocket."""
    router = APIRouter(tags=[FACE])
    open_now: set[WebSocket] = set()

    @router.websocket("/v1/realtime")
    async def follow(socket: WebSocket) -> None:
        socket.state.face = FACE
        caller = await front.access.manage(socket)
        text = socket.query_params.get("call_id")
        if not text:
            raise Refused(
                Code.CALL_ID_NEEDED,
                "a WebSocket follows a call here: add ?call_id= with the id from its Location; "
                "sessions begin by POST to /v1/realtime/calls",
                param="call_id",
            )
        if len(open_now) >= MAX_SIDEBANDS:
            detail = f"{MAX_SIDEBANDS} sidebands are open here; try again later"
            raise Refused(Code.TOO_MANY_SIDEBANDS, detail, retry_after_s=RETRY_S)
        open_now.add(socket)
        try:
            call_id, endpoint = front.calls.owner(text)
            try:
                owner = await sidebands.open(
                    endpoint, call_id, dialect_of(socket, caller), caller.subject
                )
            except Unreachable:
                raise owner_gone() from None
            await _pump(socket, owner, call_id.public)
        finally:
            open_now.discard(socket)

    return router


async def _pump(socket: WebSocket, owner: ClientConnection, call: str) -> None:
    """Until one of the two is done."""
    code: int | None = None
    try:
        offered = SUBPROTOCOL in socket.scope["subprotocols"]
        await socket.accept(SUBPROTOCOL if offered else None)
        log.info("call %s has a sideband", call)
        code = await _until_done(_down(owner, socket), _up(socket, owner))
    finally:
        log.info("call %s lost a sideband, close=%s", call, code)
        await owner.close()
    if code is not None:
        with contextlib.suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
            async with asyncio.timeout(1.0):
                await socket.close(code)


async def _until_done(*ways: Coroutine[Any, Any, int | None]) -> int | None:
    """The code to close with, of the way that is done first; None: the client is gone."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return min((task.result() for task in done), key=lambda code: code or 0)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _down(owner: ClientConnection, socket: WebSocket) -> int | None:
    """What the call says."""
    try:
        async for message in owner:
            async with asyncio.timeout(SEND_S):
                if isinstance(message, str):
                    await socket.send_text(message)
                else:
                    await socket.send_bytes(message)
    except TimeoutError:
        return SLOW
    except WebSocketDisconnect:
        return None
    except ConnectionClosed:
        pass
    return LOST if owner.close_code in _UNSPEAKABLE else owner.close_code


async def _up(socket: WebSocket, owner: ClientConnection) -> int | None:
    """What the client says."""
    while True:
        received = await socket.receive()
        if received["type"] == "websocket.disconnect":
            return None
        text = received.get("text")
        try:
            await owner.send(received["bytes"] if text is None else text)
        except ConnectionClosed:
            return LOST if owner.close_code in _UNSPEAKABLE else owner.close_code
