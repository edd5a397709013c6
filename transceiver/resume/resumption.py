"""Carry on a call that another process has left: its record found, opened and claimed, once."""

import contextlib
import enum
import logging
import secrets
from collections import Counter
from dataclasses import dataclass

from relayctl.wire.call_id import CallId, CallIdError, parse
from transceiver.resume.record import Record, RecordError, claim_of, unseal
from transceiver.resume.vault import Vault, VaultError
from transceiver.resume.writer import Writer

log = logging.getLogger("transceiver")


class Reason(enum.StrEnum):
    """Why a call cannot be carried on; also the `result` of a counter."""

    UNKNOWN = "call_not_found"
    ALREADY = "already_resumed"
    EXPIRED = "resume_expired"
    UNAVAILABLE = "resume_unavailable"


class ResumeError(LookupError):
    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a new call begins with, and whose it was."""

    old: CallId
    record: Record


class Resumption:
    """`writer` keeps the records of the calls here. None for both: nothing is kept."""

    def __init__(self, vault: Vault | None, writer: Writer | None, counts: Counter[str]) -> None:
        self._vault = vault
        self.writer = writer
        self._counts = counts

    async def take(self, text: str, subject: str) -> Resumed:
        """Claim the call of id `text` for `subject`. Raises `ResumeError`."""
        try:
            resumed = await self._take(text, subject)
        except ResumeError as error:
            self._counts[error.reason] += 1
            raise
        except VaultError as error:
            self._counts[Reason.UNAVAILABLE] += 1
            log.warning("no resume: redis is silent (%s)", error)
            raise _unavailable("the store of calls does not answer") from None
        self._counts["resumed"] += 1
        return resumed

    async def release(self, resumed: Resumed) -> None:
        """The new call could not be made: let another try have it."""
        assert self._vault is not None
        assert self.writer is not None
        self._counts["released"] += 1
        try:
            await self._vault.drop(claim_of(resumed.old))
        except VaultError:
            self.writer.give_back(resumed.old)

    async def _take(self, text: str, subject: str) -> Resumed:
        if self._vault is None:
            raise _unavailable("nothing is kept of calls here: `redis` and `resume` say so")
        try:
            old = parse(text)
        except CallIdError as error:
            raise ResumeError(Reason.UNKNOWN, str(error)) from None
        sealed, claimed = await self._vault.read(old)
        if claimed:
            raise _already()
        if sealed is None:
            raise ResumeError(Reason.EXPIRED, "nothing is kept of this call: begin a new one")
        try:
            record = unseal(sealed, old)
        except RecordError as error:
            log.warning("record of %s: %s", old.public, error)
            detail = "what is kept of this call cannot be read: begin a new one"
            raise ResumeError(Reason.EXPIRED, detail) from None
        if record.subject != subject:
            raise ResumeError(Reason.UNKNOWN, f"no call {old.public}")
        mine = secrets.token_bytes(16)
        try:
            if not await self._vault.claim(old, mine):
                raise _already()
        except VaultError:  # it may be ours all the same
            with contextlib.suppress(VaultError):
                await self._vault.unclaim(old, mine)
            raise
        return Resumed(old, record)


def _already() -> ResumeError:
    return ResumeError(Reason.ALREADY, "this call was resumed already: resume the one it became")


def _unavailable(detail: str) -> ResumeError:
    return ResumeError(Reason.UNAVAILABLE, detail)
