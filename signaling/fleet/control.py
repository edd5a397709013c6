"""Client of the transceivers' control API: one method a verb, one error for each way to fail.

Thin I/O over an `Exchange` that comes in. It chooses no transceiver and keeps no state.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from relayctl.wire import address
from relayctl.wire.address import Address
from relayctl.wire.call_id import CallId, CallIdError, parse
from signaling.fleet.control_http import Exchange, NoReply, Reply
from signaling.ice import Credentials
from signaling.refusal import Code, Refused
from signaling.session import Session

TIMEOUT_S = 2.0  # an answer takes some ms of CPU there
READY_S = 0.5
UNREACHABLE = "unreachable"  # the reason of a transceiver that gives none
DEFAULT_RETRY_S = 5
MAX_RETRY_S = 60

INGRESS = "X-Ferryline-Ingress"
STEERING = "X-Ferryline-Steering"

_PARAMS = {
    "offer": "sdp",
    "session": "session",
    "resume": "resume",
}  # the transceiver's name -> the client's

_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_CREATE = {
    400: Code.BAD_SDP,
    406: Code.NOT_ACCEPTABLE,
    429: Code.TOO_MANY_HALF_OPEN,
    503: Code.ALL_FULL,
}
_ON_CALL = {404: Code.CALL_NOT_FOUND, 410: Code.CALL_ENDED}
_RESUME = {
    **_CREATE,
    404: Code.CALL_NOT_FOUND,
    409: Code.ALREADY_RESUMED,
    410: Code.RESUME_EXPIRED,
    502: Code.RESUME_UNAVAILABLE,
}
_HAND_OVER = {**_ON_CALL, 502: Code.RESUME_UNAVAILABLE}
_RESTART = {400: Code.BAD_SDP, 406: Code.NOT_ACCEPTABLE, 409: Code.CONFLICT, **_ON_CALL}


class Unreachable(Exception):
    """Nothing answers at the endpoint, or not in time."""


@dataclass(frozen=True, slots=True)
class Created:
    """A call that a transceiver has begun."""

    call_id: CallId
    answer: str
    ingress: str = ""  # name of the relay site whose VIPs stand in the answer
    steering: str = ""  # why it is there, in a few words

    @property
    def headers(self) -> dict[str, str]:
        """For the answer of whichever face began the call."""
        told = {INGRESS: self.ingress, STEERING: self.steering}
        return {name: text for name, text in told.items() if text}


@dataclass(frozen=True, slots=True)
class Readiness:
    """Does it take calls, how full is it (calls / capacity), and why it takes none."""

    ready: bool
    load: float = 0.0
    reason: str = ""


class Control:
    """The control API of every transceiver. `token` goes with each request when it is set."""

    def __init__(self, exchange: Exchange, token: str = "") -> None:
        self._exchange = exchange
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def create(
        self,
        endpoint: Address,
        offer: str,
        vips: tuple[Address, ...],
        dialect: str,
        session: Session | None = None,
        subject: str = "",
        resume: CallId | None = None,
    ) -> Created:
        """Begin a call, or carry on the call `resume`. Raises `Refused` (`all_full` when it has no
        slot) or `Unreachable`."""
        body: dict[str, Any] = {"offer": offer, "vips": [address.render(vip) for vip in vips]}
        body["dialect"] = dialect
        if session:
            body["session"] = session
        if subject:
            body["subject"] = subject
        if resume is not None:
            body["resume"] = resume.render()
        reply = await self._send("POST", endpoint, "", body)
        if reply.status != 201:
            raise _refusal(endpoint, reply, _CREATE if resume is None else _RESUME)
        values = _object(endpoint, reply)
        try:
            return Created(parse(values["id"]), _text(values["answer"]))
        except (KeyError, TypeError, CallIdError):
            raise _nonsense(endpoint, reply) from None

    async def restart(self, endpoint: Address, call_id: CallId, offer: str | Credentials) -> str:
        """A later offer for a call, or new ICE credentials alone: the answer. Raises `Refused` or
        `Unreachable`."""
        body = (
            {"offer": offer}
            if isinstance(offer, str)
            else {"ice": {"ufrag": offer.ufrag, "pwd": offer.pwd}}
        )
        reply = await self._send("POST", endpoint, f"/{call_id.render()}/restart", body)
        if reply.status != 200:
            raise _refusal(endpoint, reply, _RESTART)
        try:
            return _text(_object(endpoint, reply)["answer"])
        except (KeyError, TypeError):
            raise _nonsense(endpoint, reply) from None

    async def end(self, endpoint: Address, call_id: CallId, subject: str = "") -> None:
        """End a call; of `subject`, if one is named. Raises `Refused` or `Unreachable`."""
        of = f"?subject={quote(subject, safe='')}" if subject else ""
        reply = await self._send("DELETE", endpoint, f"/{call_id.render()}{of}")
        if reply.status != 204:
            raise _refusal(endpoint, reply, _ON_CALL)

    async def hand_over(self, endpoint: Address, call_id: CallId, subject: str) -> None:
        """End a call of `subject`, for another to carry it on. Raises as `end`."""
        query = f"reason=resumed&subject={quote(subject, safe='')}"
        reply = await self._send("DELETE", endpoint, f"/{call_id.render()}?{query}")
        if reply.status != 204:
            raise _refusal(endpoint, reply, _HAND_OVER)

    async def describe(self, endpoint: Address, call_id: CallId) -> dict[str, Any]:
        """State of a call, as the transceiver tells it. Raises `Refused` or `Unreachable`."""
        reply = await self._send("GET", endpoint, f"/{call_id.render()}")
        if reply.status != 200:
            raise _refusal(endpoint, reply, _ON_CALL)
        return _object(endpoint, reply)

    async def readiness(self, endpoint: Address, within_s: float = READY_S) -> Readiness:
        """Ask `/readyz`. Its `calls`, `capacity` and `reason` are used if they are there."""
        try:
            reply = await self._exchange.ask(
                "GET", endpoint, "/readyz", headers={}, content=b"", timeout_s=within_s
            )
        except NoReply:
            return Readiness(False, reason=UNREACHABLE)
        if reply.status == 200:
            return Readiness(True, _load(reply))
        return Readiness(False, _load(reply), _reason(reply))

    async def _send(
        self, method: str, endpoint: Address, path: str, body: Mapping[str, Any] | None = None
    ) -> Reply:
        headers, content = self._headers, b""
        if body is not None:
            headers = {**headers, "Content-Type": "application/json"}
            content = json.dumps(body).encode()
        try:
            return await self._exchange.ask(
                *(method, endpoint, f"/v1/calls{path}"),
                headers=headers,
                content=content,
                timeout_s=TIMEOUT_S,
            )
        except NoReply as error:
            raise Unreachable(f"{address.render(endpoint)}: {error}") from None


def _refusal(endpoint: Address, reply: Reply, known: Mapping[int, Code]) -> Refused:
    """What the transceiver said no to, in its own words where these are of the agreed form."""
    code = known.get(reply.status)
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
        retry_after_s=_retry_after(reply) if reply.status in (429, 503) else None,
    )
    theirs = error.get("code")
    if isinstance(theirs, str) and _CODE.fullmatch(theirs) and code not in _ON_CALL.values():
        refused.code = theirs
    return refused


def _nonsense(endpoint: Address, reply: Reply) -> Refused:
    detail = f"{address.render(endpoint)} answered {reply.status}"
    if reply.status in (401, 403):
        detail += "; `control_token` has to be the same in both configurations"
    return Refused(Code.TRANSCEIVER_ERROR, f"the transceiver could not do it: {detail}")


def _object(endpoint: Address, reply: Reply) -> dict[str, Any]:
    try:
        values = _json(reply)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise _nonsense(endpoint, reply)
    return values


def _json(reply: Reply) -> Any:
    """Raises `ValueError`."""
    try:
        return json.loads(reply.content)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _error(reply: Reply) -> Mapping[str, Any]:
    try:
        error = _json(reply)["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("want text")
    return value


def _retry_after(reply: Reply) -> int:
    text = reply.headers.get("retry-after", "")
    return min(int(text), MAX_RETRY_S) if re.fullmatch(r"\d{1,9}", text) else DEFAULT_RETRY_S


def _reason(reply: Reply) -> str:
    try:
        reason = _json(reply)["reason"]
    except (ValueError, KeyError, TypeError):
        reason = None
    if isinstance(reason, str) and _CODE.fullmatch(reason):
        return reason
    return f"status {reply.status}"


def _load(reply: Reply) -> float:
    try:
        values = _json(reply)
        load = float(values["calls"]) / float(values["capacity"])
    except (ValueError, KeyError, TypeError, ArithmeticError):
        return 0.0
    return max(load, 0.0) if math.isfinite(load) else 0.0
