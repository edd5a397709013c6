"""Keeps the records of live calls, behind them: calls tell that something changed and go on.

One write a call at a time, always of its latest state, and the larger the record the rarer. A
record is there for `KEEP_S` after its call's last sign of life: it is touched while the call
lives, and written anew if Redis has lost it. Redis may be slow, hung, full or gone: that costs
counts, and a record that is a little older.
"""

import asyncio
import contextlib
import functools
import logging
import math
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from relayctl.wire.call_id import CallId
from transceiver.events import Event
from transceiver.lifecycle import End
from transceiver.remembered import Remembered
from transceiver.resume.record import (
    KEEP_S,
    MAX_RECORD,
    Record,
    RecordError,
    claim_of,
    key_of,
    render,
    seal,
)
from transceiver.resume.vault import Vault, VaultError

SETTLE_S = 0.05  # for what comes together
LARGE_S = 2.0  # between writes of the largest record
MOVES_S = 1.0  # while a reply plays
TOUCH_S = KEEP_S / 3
AGAIN_S = 1.0  # after a failure
STOP_S = 1.0
MAX_AT_ONCE = 8  # commands under way; each has a record made inline
MAX_LAST = 4096  # keys of calls that are gone
MAX_LAST_SIZE = 16 * 1024 * 1024  # bytes of their records

CHANGES = frozenset(
    {
        "session.created",
        "session.updated",
        "conversation.item.done",
        "conversation.item.deleted",
        "conversation.item.truncated",
        "conversation.item.input_audio_transcription.completed",
        "response.output_item.done",
        "output_audio_buffer.started",
        "output_audio_buffer.stopped",
        "output_audio_buffer.cleared",
    }
)
PROPER = frozenset({End.HANGUP, End.CLOSED_BY_PEER, End.BACKEND_ENDED, End.EXPIRED})

T = TypeVar("T")

log = logging.getLogger("transceiver")


class Source(Protocol):
    """A call, as the writer knows it."""

    id: CallId
    subject: str
    reason: End | None
    resumes: CallId | None  # the call that this one carries on

    @property
    def connected_once(self) -> bool: ...

    def remembered(self) -> Remembered: ...


@dataclass(slots=True)
class _Entry:
    call: Source
    due: float  # when to write, or to touch if nothing changed
    changed: bool = True
    spared: float = 0.0  # no write before then
    dropped: int = 0  # items that did not fit


class Writer:
    """`counts` are the tries by what came of them. `clock` in seconds, monotonic."""

    def __init__(
        self, vault: Vault, counts: Counter[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._vault = vault
        self._counts = counts
        self._clock = clock
        self._entries: dict[CallId, _Entry] = {}  # live calls
        self._last: OrderedDict[str, bytes | None] = OrderedDict()  # key -> record; None: drop it
        self._last_size = 0
        self._wake = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._silent = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """After the last call: what they left is written, if Redis takes it now."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self._round()

    def note(self, call: Source, event: Event) -> None:
        """The call says this to its client."""
        if event.get("type") in CHANGES:
            self.changed(call)

    def changed(self, call: Source) -> None:
        """There is something new to remember of it."""
        if call.reason is not None:
            return
        now = self._clock()
        entry = self._entries.setdefault(call.id, _Entry(call, now))
        entry.changed, entry.due = True, max(now + SETTLE_S, entry.spared)
        self._wake.set()

    def ended(self, call: Source) -> None:
        """While it can still be asked. What ended as it should is forgotten; a call that carried
        on another and was never connected gives that one back."""
        entry = self._entries.pop(call.id, None)
        if call.resumes is not None:
            if call.connected_once:
                self._leave(key_of(call.resumes), None)
            else:
                self.give_back(call.resumes)
        if entry is None:
            return
        nobody = not call.connected_once and call.resumes is None
        if nobody or call.reason in PROPER:
            self._leave(key_of(call.id), None)
        elif call.reason is not End.RESUMED:  # that was flushed, and may be claimed by now
            sealed, _ = self._sealed(entry)
            if sealed is not None:
                self._leave(key_of(call.id), sealed)

    def give_back(self, old: CallId) -> None:
        """Nobody has resumed this call after all."""
        self._leave(claim_of(old), None)

    async def flush(self, call: Source) -> bool:
        """Write the call as it is now; whether that went well."""
        self.changed(call)
        async with self._one_at_a_time:
            entry = self._entries.get(call.id)
            return entry is not None and await self._write(entry)

    def _leave(self, key: str, sealed: bytes | None) -> None:
        """What is to be done for a call that is gone."""
        self._last_size += len(sealed or b"") - len(self._last.pop(key, None) or b"")
        self._last[key] = sealed
        while len(self._last) > MAX_LAST or self._last_size > MAX_LAST_SIZE:
            _, lost = self._last.popitem(last=False)
            self._last_size -= len(lost or b"")
            self._counts["overflowed"] += 1
        self._wake.set()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            due = min((entry.due for entry in self._entries.values()), default=math.inf)
            wait = 0.0 if self._last else min(max(due - self._clock(), 0.0), TOUCH_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            await asyncio.sleep(AGAIN_S if self._silent else SETTLE_S)
            await self._round()

    async def _round(self) -> None:
        """All that is due, some of it at once; what fails is due again."""
        now = self._clock()
        steps: list[Callable[[], Awaitable[object]]] = [
            functools.partial(self._carry_out, key) for key in self._last
        ]
        due = [entry for entry in self._entries.values() if entry.due <= now]
        steps += [functools.partial(self._attend, entry) for entry in due]
        async with self._one_at_a_time:
            for at in range(0, len(steps), MAX_AT_ONCE):
                await asyncio.gather(*(step() for step in steps[at : at + MAX_AT_ONCE]))
                if self._silent:
                    return

    async def _carry_out(self, key: str) -> None:
        sealed = self._last.get(key)
        done = self._vault.drop(key) if sealed is None else self._vault.put(key, sealed)
        went_well = await self._try(done, "dropped" if sealed is None else "written")
        if went_well and self._last.get(key, b"") is sealed:
            del self._last[key]
            self._last_size -= len(sealed or b"")

    async def _attend(self, entry: _Entry) -> None:
        if self._entries.get(entry.call.id) is not entry:
            return
        if entry.changed:
            await self._write(entry)
            return
        entry.due = self._clock() + TOUCH_S
        there = await self._try(self._vault.touch(key_of(entry.call.id)), "touched")
        if there is not True:
            entry.changed, entry.due = True, self._clock() + AGAIN_S

    async def _write(self, entry: _Entry) -> bool:
        entry.changed = False
        sealed, moves = self._sealed(entry)
        if sealed is None:
            entry.due = math.inf
            return False
        went_well = await self._try(self._vault.put(key_of(entry.call.id), sealed), "written")
        now = self._clock()
        entry.spared = now + LARGE_S * len(sealed) / MAX_RECORD
        if went_well is None:
            entry.changed, entry.due = True, max(now + AGAIN_S, entry.spared)
        elif entry.changed:
            entry.due = max(entry.due, entry.spared)
        else:
            entry.changed, entry.due = moves, now + (MOVES_S if moves else TOUCH_S)
        return went_well is not None

    def _sealed(self, entry: _Entry) -> tuple[bytes | None, bool]:
        """The call's record, if it can be had, and whether it is soon another."""
        call = entry.call
        try:
            remembered = call.remembered()
            record = Record(call.subject, remembered.session, remembered.items)
            text, dropped = render(record)
        except RecordError:
            self._counts["too_large"] += 1
            return None, False
        except Exception:
            log.exception("fault in the record of a call")
            self._counts["failed"] += 1
            return None, False
        self._counts["items_dropped"] += max(0, dropped - entry.dropped)
        entry.dropped = max(dropped, entry.dropped)
        return seal(text, call.id, os.urandom), remembered.moves

    async def _try(self, command: Awaitable[T], what: str) -> T | bool | None:
        """True, or what Redis answers; None if it does not."""
        try:
            answer = await command
        except VaultError as error:
            self._counts["failed"] += 1
            if not self._silent:
                log.warning("redis is silent (%s): calls cannot be resumed elsewhere", error)
            self._silent = True
            return None
        self._counts[what] += 1
        if self._silent:
            log.info("redis answers again: calls can be resumed elsewhere")
        self._silent = False
        return True if answer is None else answer
