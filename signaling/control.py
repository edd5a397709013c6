"""Client of the transceivers' control API: one method a verb, one error for each way to fail.

Thin I/O over an `httpx.AsyncClient` that comes in. It chooses no transceiver and keeps no state.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from relayctl.wire import address
from relayctl.wire.address import Address
from relayctl.wire.call_id import CallId, CallIdError, parse
from signaling.refusal import Code, Refused
from signaling.session import Session

TIMEOUT = httpx.Timeout(2.0, connect=1.0)  # seconds; an answer takes ~10 ms of CPU there
READY_TIMEOUT = httpx.Timeout(0.5)
DEFAULT_RETRY_S = 5
MAX_RETRY_S = 60

_PARAMS = {"offer": "sdp", "session": "session"}  # the transceiver's name -> the client's

_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_CREATE = {
    400: Code.BAD_SDP,
    406: Code.NOT_ACCEPTABLE,
    429: Code.TOO_MANY_HALF_OPEN,
    503: Code.ALL_FULL,
}
_ON_CALL = {404: Code.CALL_NOT_FOUND, 410: Code.CALL_ENDED}
_RESTART = {400: Code.BAD_SDP, 406: Code.NOT_ACCEPTABLE, 409: Code.CONFLICT, **_ON_CALL}


class Unreachable(Exception):
    """Nothing answers at the endpoint, or not in time."""


@dataclass(frozen=True, slots=True)
class Created:
    """A call that a transceiver has begun."""

    call_id: CallId
    answer: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """Does it take calls, how full is it (calls / capacity), and why it takes none."""

    ready: bool
    load: float = 0.0
    reason: str = ""


class Control:
    """The control API of every transceiver. `token` goes with each request when it is set."""

    def __init__(self, client: httpx.AsyncClient, token: str = "") -> None:
        self._client = client
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def create(
        self,
        endpoint: Address,
        offer: str,
        vips: tuple[Address, ...],
        dialect: str,
        session: Session | None = None,
        subject: str = "",
    ) -> Created:
        """Begin a call. Raises `Refused` (`all_full` when it has no slot) or `Unreachable`."""
        body: dict[str, Any] = {"offer": offer, "vips": [address.render(vip) for vip in vips]}
        body["dialect"] = dialect
        if session:
            body["session"] = session
        if subject:
            body["subject"] = subject
        reply = await self._send("POST", endpoint, "", body)
        if reply.status_code != 201:
            raise _refusal(endpoint, reply, _CREATE)
        values = _object(endpoint, reply)
        try:
            return Created(parse(values["id"]), _text(values["answer"]))
        except (KeyError, TypeError, CallIdError):
            raise _nonsense(endpoint, reply) from None

    async def restart(self, endpoint: Address, call_id: CallId, offer: str) -> str:
        """New ICE credentials for a call: its answer. Raises `Refused` or `Unreachable`."""
        reply = await self._send("POST", endpoint, f"/{call_id.render()}/restart", {"offer": offer})
        if reply.status_code != 200:
            raise _refusal(endpoint, reply, _RESTART)
        try:
            return _text(_object(endpoint, reply)["answer"])
        except (KeyError, TypeError):
            raise _nonsense(endpoint, reply) from None

    async def end(self, endpoint: Address, call_id: CallId) -> None:
        """End a call. Raises `Refused` or `Unreachable`."""
        reply = await self._send("DELETE", endpoint, f"/{call_id.render()}")
        if reply.status_code != 204:
            raise _refusal(endpoint, reply, _ON_CALL)

    async def describe(self, endpoint: Address, call_id: CallId) -> dict[str, Any]:
        """State of a call, as the transceiver tells it. Raises `Refused` or `Unreachable`."""
        reply = await self._send("GET", endpoint, f"/{call_id.render()}")
        if reply.status_code != 200:
            raise _refusal(endpoint, reply, _ON_CALL)
        return _object(endpoint, reply)

    async def readiness(self, endpoint: Address) -> Readiness:
        """Ask `/readyz`. Its `calls`, `capacity` and `reason` are used if they are there."""
        try:
            reply = await self._client.get(
                f"http://{address.render(endpoint)}/readyz", timeout=READY_TIMEOUT
            )
        except httpx.HTTPError:
            return Readiness(False, reason="unreachable")
        if reply.status_code == 200:
            return Readiness(True, _load(reply))
        return Readiness(False, _load(reply), _reason(reply))

    async def _send(
        self, method: str, endpoint: Address, path: str, body: Mapping[str, Any] | None = None
    ) -> httpx.Response:
        url = f"http://{address.render(endpoint)}/v1/calls{path}"
        try:
            return await self._client.request(
                method, url, json=body, headers=self._headers, timeout=TIMEOUT
            )
        except httpx.HTTPError as error:
            # the cause stays out: its request holds call id and token
            raise Unreachable(f"{address.render(endpoint)}: {type(error).__name__}") from None


def _refusal(endpoint: Address, reply: httpx.Response, known: Mapping[int, Code]) -> Refused:
    """What the transceiver said no to, in its own words where these are of the agreed form."""
    code = known.get(reply.status_code)
    if code is None:
        return _nonsense(endpoint, reply)
    error = _error(reply)
    message = error.get("message")
    param = _PARAMS.get(str(error.get("param")))
    if code is Code.BAD_SDP and param is None:
        return _nonsense(endpoint, reply)  # it minds something that we added
    refused = Refused(
        code,
        message if isinstance(message, str) and message else f"the transceiver says {code}",
        param=param,
        retry_after_s=_retry_after(reply) if reply.status_code in (429, 503) else None,
    )
    theirs = error.get("code")
    if isinstance(theirs, str) and _CODE.fullmatch(theirs) and code not in _ON_CALL.values():
        refused.code = theirs
    return refused


def _nonsense(endpoint: Address, reply: httpx.Response) -> Refused:
    detail = f"{address.render(endpoint)} answered {reply.status_code}"
    if reply.status_code in (401, 403):
        detail += "; `control_token` has to be the same in both configurations"
    return Refused(Code.TRANSCEIVER_ERROR, f"the transceiver could not do it: {detail}")


def _object(endpoint: Address, reply: httpx.Response) -> dict[str, Any]:
    try:
        values = reply.json()
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise _nonsense(endpoint, reply)
    return values


def _error(reply: httpx.Response) -> Mapping[str, Any]:
    try:
        error = reply.json()["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("want text")
    return value


def _retry_after(reply: httpx.Response) -> int:
    text = reply.headers.get("Retry-After", "")
    return min(int(text), MAX_RETRY_S) if re.fullmatch(r"\d{1,9}", text) else DEFAULT_RETRY_S


def _reason(reply: httpx.Response) -> str:
    try:
        reason = reply.json()["reason"]
    except (ValueError, KeyError, TypeError):
        reason = None
    if isinstance(reason, str) and _CODE.fullmatch(reason):
        return reason
    return f"status {reply.status_code}"


def _load(reply: httpx.Response) -> float:
    try:
        values = json.loads(reply.content)
        return float(values["calls"]) / float(values["capacity"])
    except (ValueError, KeyError, TypeError, ArithmeticError):
        return 0.0
