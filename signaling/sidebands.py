"""WebSockets to the transceivers' control APIs: the events of a call, to read and to say.

Thin I/O: it connects, and tells why it could not. Nothing of the control token reaches a log.
"""

import asyncio
import json
import logging
from typing import Any
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from relayctl.wire import address
from relayctl.wire.address import Address
from relayctl.wire.call_id import CallId
from signaling.fleet.control import DEFAULT_RETRY_S, Unreachable
from signaling.refusal import Code, Refused

CONNECT_S = 2.0
PING_S = 20.0  # between pings, and until an unanswered one ends the connection
CLOSE_S = 1.0
MAX_EVENT = 16 << 20  # bytes, of a transceiver

_REFUSALS = {
    404: (Code.CALL_NOT_FOUND, "there is no call of this id"),
    410: (Code.CALL_ENDED, "the call has ended"),
    429: (Code.TOO_MANY_SIDEBANDS, "the call has enough sidebands"),
}
_MUTE = logging.Logger("sidebands", logging.CRITICAL)  # the library's would write headers: tokens


class _Straight(connect):
    """Goes nowhere else: the control token is for our transceivers."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class Sidebands:
    """Of every transceiver. `token` goes with each request when it is set."""

    def __init__(self, token: str = "") -> None:
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def open(
        self, endpoint: Address, call_id: CallId, dialect: str, subject: str = ""
    ) -> ClientConnection:
        """Follow a call; of `subject`, if one is named. Raises `Refused` or `Unreachable`."""
        query = {"dialect": dialect} | ({"subject": subject} if subject else {})
        where = address.render(endpoint)
        url = f"ws://{where}/v1/calls/{call_id.render()}/events?{urlencode(query)}"
        try:
            async with asyncio.timeout(CONNECT_S):
                return await _Straight(
                    url,
                    additional_headers=self._headers,
                    compression=None,  # its memory, for each
                    proxy=None,  # an environment's must not see what goes to transceivers
                    open_timeout=None,
                    ping_interval=PING_S,
                    ping_timeout=PING_S,
                    close_timeout=CLOSE_S,
                    max_size=MAX_EVENT,
                    logger=_MUTE,
                )
        except InvalidStatus as error:
            raise _refusal(where, error.response.status_code, error.response.body) from None
        except (OSError, TimeoutError, WebSocketException) as error:
            raise Unreachable(f"{where}: {type(error).__name__}") from None


def _refusal(where: str, status: int, body: bytes | bytearray | None) -> Refused:
    if status not in _REFUSALS:
        detail = f"{where} answered {status} to a sideband"
        return Refused(Code.TRANSCEIVER_ERROR, f"the transceiver could not do it: {detail}")
    code, message = _REFUSALS[status]
    retry_s = DEFAULT_RETRY_S if status == 429 else None
    return Refused(code, _message(body) or message, param="call_id", retry_after_s=retry_s)


def _message(body: bytes | bytearray | None) -> str | None:
    """The transceiver's own words, if they are of the agreed form."""
    try:
        error: Any = json.loads(body or b"")["error"]
        message = error["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return message if isinstance(message, str) else None
