"""Who asks: the key of a request, what it may do, and how often.

A call's id is its capability: restart, state, path and candidates need no key beside it. Starting
a call takes an API key or an ephemeral one; managing calls (hang-up, sideband, new ephemeral keys)
takes an API key, whose subject has to be the call's.

Where access is open nobody has to show a key; one that is known counts all the same, because its
holder has limits, and a session may be tied to it.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

from signaling.access import ephemeral_keys
from signaling.access.api_keys import ApiKeys
from signaling.access.config import Rules
from signaling.access.ephemeral_keys import EphemeralKey, EphemeralKeys, KeysFull, KeysUnavailable
from signaling.access.limits import Buckets, network_of
from signaling.refusal import Code, Refused
from signaling.session import Session

SUBPROTOCOL = "openai-insecure-api-key."  # a browser's WebSocket cannot set a header
MAX_KEY = 256  # characters
FAILED_PER_MINUTE = 30  # wrong keys, of one client address
SOON_S = 1


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a request is. `subject` is "" where no keys are asked for; `session` is what
    the ephemeral key was made for, and stands over what the client asks. `beta`: that session has
    the names of the beta API, and so shall the call's events."""

    subject: str = ""
    session: Session = field(default_factory=dict, repr=False)
    beta: bool = False


@dataclass(frozen=True, slots=True)
class Minted:
    """A new ephemeral key. `expires` in unix seconds."""

    text: str = field(repr=False)
    expires: int


OPEN = Rules(ApiKeys(()), open=True, client_hangup=True, offers_per_minute=0)


class Access:
    """`client_of` tells a request's client address. `clock` is monotonic, `wall` unix seconds."""

    def __init__(
        self,
        rules: Rules = OPEN,
        ephemeral: EphemeralKeys | None = None,
        client_of: Callable[[HTTPConnection], str] = lambda request: "",
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._rules = rules
        self._ephemeral = ephemeral or ephemeral_keys.InMemory()
        self._client_of = client_of
        self._clock = clock
        self._wall = wall
        self._random_bytes = random_bytes
        self._offers = Buckets()
        self._mints = Buckets()
        self._failed = Buckets()

    async def start(self, request: HTTPConnection, ephemeral: str | None = None) -> Caller:
        """May the request begin a call? `ephemeral`: the key, if it stands in the path, where an
        API key has no business. Raises `Refused`: 401, 429, 503."""
        text = ephemeral or _key_of(request)
        if ephemeral is None and (subject := self._manager(text)) is not None:
            self._take(self._offers, request, subject)
            return Caller(subject)
        self._take(self._offers, request)
        key = await self._holder(request, text)
        if key is None:
            return Caller()
        if key.subject:
            self._take(self._offers, request, key.subject)
        return Caller(key.subject, key.session, key.beta)

    async def manage(self, request: HTTPConnection) -> Caller:
        """May it end, watch or steer calls of its subject? Raises `Refused`: 401, 403, 429."""
        text = _key_of(request)
        subject = self._manager(text)
        if subject is None and not self._rules.open:
            if text is not None and text.startswith(ephemeral_keys.PREFIX):
                raise Refused(
                    Code.API_KEY_NEEDED, "an ephemeral key only begins calls; use an API key"
                )
            raise self._wrong(request, text)
        return Caller(subject or "")

    async def hang_up(self, request: HTTPConnection) -> Caller:
        """May it end calls of its subject? As `manage`; where the rules say so, an ephemeral key
        does too. Raises `Refused`: 401, 403, 429, 503."""
        text = _key_of(request)
        if (
            self._rules.client_hangup
            and text is not None
            and text.startswith(ephemeral_keys.PREFIX)
        ):
            key = await self._holder(request, text)
            return Caller(key.subject if key else "")
        return await self.manage(request)

    async def mint(
        self, request: HTTPConnection, session: Session, life_s: int, *, beta: bool = False
    ) -> Minted:
        """A new ephemeral key of whoever may manage, for calls with `session`. Raises `Refused`:
        401, 403, 429, 503."""
        caller = await self.manage(request)
        self._take(self._mints, request, caller.subject)
        now = self._wall()
        key = EphemeralKey(caller.subject, int(now) + life_s, session, beta)
        text = ephemeral_keys.render(self._random_bytes(ephemeral_keys.RANDOM_BYTES))
        try:
            await self._ephemeral.put(text, key, now)
        except KeysUnavailable:
            raise _unavailable() from None
        except KeysFull:
            raise Refused(
                Code.TOO_MANY_KEYS,
                "too many ephemeral keys wait for their expiry; try again later, or let them "
                "expire sooner",
                retry_after_s=60,
            ) from None
        return Minted(text, key.expires)

    def _manager(self, text: str | None) -> str | None:
        """The subject whose API key this is."""
        key = self._rules.keys.find(text) if text is not None else None
        return key.subject if key is not None else None

    async def _holder(self, request: HTTPConnection, text: str | None) -> EphemeralKey | None:
        """The ephemeral key of this text; None where a request may do without."""
        key = None
        if text is not None and text.startswith(ephemeral_keys.PREFIX):
            self._expect_patience(request)
            try:
                key = await self._ephemeral.get(text, self._wall())
            except KeysUnavailable:
                raise _unavailable() from None
        if self._rules.open:
            return key
        if key is None or self._rules.keys.offers_per_minute(key.subject) is None:
            raise self._wrong(request, text)
        return key

    def _take(self, buckets: Buckets, request: HTTPConnection, subject: str = "") -> None:
        """Take one from the bucket of the subject, or of the client's address."""
        if subject:
            name, rate = subject, self._rules.keys.offers_per_minute(subject) or 0
        else:
            name, rate = self._address(request), self._rules.offers_per_minute
        wait_s = buckets.take(f"{'subject' if subject else 'address'} {name}", rate, self._clock())
        if wait_s:
            whose = "with this key" if subject else "from this address"
            raise _limited(f"more than {rate} of these {whose} in a minute", wait_s)

    def _wrong(self, request: HTTPConnection, text: str | None) -> Refused:
        """What to say to a request without a key that is good for it."""
        if text is None:
            return Refused(
                Code.MISSING_API_KEY, "a key is needed; send it as `Authorization: Bearer <key>`"
            )
        self._expect_patience(request)
        self._failed.take(self._address(request), FAILED_PER_MINUTE, self._clock())
        return Refused(
            Code.INVALID_API_KEY, "the key is not known here, or an ephemeral one that has expired"
        )

    def _expect_patience(self, request: HTTPConnection) -> None:
        """Raises `Refused` while too many wrong keys came from the client's address."""
        wait_s = self._failed.wait(self._address(request), FAILED_PER_MINUTE, self._clock())
        if wait_s:
            raise _limited("too many wrong keys from this address", wait_s)

    def _address(self, request: HTTPConnection) -> str:
        return network_of(self._client_of(request))


def _key_of(request: HTTPConnection) -> str | None:
    """The key that a request shows, in a header or, on a WebSocket, among its subprotocols."""
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and text.strip():
        return text.strip()[:MAX_KEY]
    for subprotocol in request.scope.get("subprotocols", ()):
        if subprotocol.startswith(SUBPROTOCOL):
            return str(subprotocol.removeprefix(SUBPROTOCOL)[:MAX_KEY])
    return None


def _limited(message: str, wait_s: int) -> Refused:
    return Refused(Code.RATE_LIMITED, f"{message}; wait {wait_s} s", retry_after_s=wait_s)


def _unavailable() -> Refused:
    return Refused(
        Code.KEYS_UNAVAILABLE,
        "ephemeral keys cannot be looked up or kept just now; try again soon",
        retry_after_s=SOON_S,
    )
