"""Keeps flows in Redis for every relay of a site, and asks there for those that came to this one.

Written behind: what the sweep finds due waits in a bounded queue. Nothing here is ever waited for:
with Redis slow, hung, gone, full or read-only, queues overflow, counted, and each change of its
state is one line of the log. What was lost is written again by the refreshes of the next 40 s.
"""

import asyncio
import base64
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, TypeGuard

from redis import exceptions
from redis.exceptions import RedisError

from relayctl import cached_flow
from relayctl.cached_flow import EXPIRES_S, hint_name, name_of
from relayctl.control.due_flows import Due, DueFlows
from relayctl.control.flow_slice import Bools, FlowSlice
from relayctl.flow import FlowKey
from relayctl.messages import Absent, Found, Message, Wanted
from relayctl.wire.redis_client import Client

BATCH = 512  # commands or look-ups in one round
MAX_DUE = 16384
MAX_WANTED = 4096
ANSWER_S = 0.25  # patience with a look-up; its packets wait for 50 ms, its flow comes late too
WRITE_S = 1.0  # patience with a batch of writes
PAUSE_S = 0.5  # between looks at a Redis that does not answer, and the beat of a quiet one

OK, SILENT, REFUSING = "ok", "silent", "refusing writes"


_GONE = (exceptions.ConnectionError, exceptions.TimeoutError, exceptions.ClusterDownError, OSError)
"""Among the answers of a batch: no answer of a server."""

log = logging.getLogger(__name__)


class FlowCache:
    """`send` reaches the packet process; `now` gives a stamp. Counters are totals."""

    def __init__(
        self, redis: Client, due: DueFlows, send: Callable[[Message], bool], now: Callable[[], int]
    ) -> None:
        self._redis = redis
        self._due_flows = due
        self._send = send
        self._now = now
        self._due: deque[Due] = deque()
        self._wanted: deque[tuple[FlowKey, int]] = deque()
        self._asked = asyncio.Event()
        self.state = OK
        self.writes: Counter[str] = Counter()  # written, refreshed, refused, dropped
        self.lookups: Counter[str] = Counter()  # found, hinted, absent, failed, dropped

    @property
    def queued(self) -> int:
        """Flows that wait to be written."""
        return len(self._due)

    def begin(self) -> None:
        """A sweep begins."""
        self._due_flows.begin(self._now())

    def see(self, flows: FlowSlice, alive: Bools) -> None:
        """What it found."""
        for due in self._due_flows.see(flows, alive):
            if len(self._due) < MAX_DUE:
                self._due.append(due)
            else:
                self.writes["dropped"] += 1

    def hear(self, message: Wanted) -> None:
        """The packet process has orphans. While Redis is silent nobody asks for them."""
        for orphan in cached_flow.read_wanted(base64.b64decode(message.orphans)):
            if self.state != SILENT and len(self._wanted) < MAX_WANTED:
                self._wanted.append(orphan)
            else:
                self.lookups["dropped"] += 1
        if self._wanted:
            self._asked.set()

    async def run(self) -> None:
        """Write and look up until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_writing())
            tasks.create_task(self._keep_asking())

    async def _keep_writing(self) -> None:
        while True:
            batch = [self._due.popleft() for _ in range(min(BATCH, len(self._due)))]
            await self._write(batch)
            if not self._due or self.state != OK:
                await asyncio.sleep(PAUSE_S)

    async def _write(self, batch: list[Due]) -> None:
        """One batch; some question without one, so that the state is always known."""
        try:
            if not batch:
                await self._execute([("EXISTS", "flow:")], WRITE_S)
                if self.state == SILENT:
                    self._became(OK)
                return
            commands = [each for due in batch for each in _first(due)]
            answers = await self._execute(commands, WRITE_S)
            missing = [
                (name, value)
                for (verb, name, value), answer in zip(_names(batch), answers, strict=True)
                if verb == "EXPIRE" and not _is_error(answer) and not answer
            ]
            if missing:
                again = [_set(name, value, "NX") for name, value in missing]
                answers += await self._execute(again, WRITE_S)
        except (RedisError, OSError, TimeoutError) as error:
            self.writes["dropped"] += len(batch) + len(self._due)
            self._due.clear()  # a later one knows better
            self._became(SILENT, type(error).__name__)
            return
        errors = [answer for answer in answers if _is_error(answer)]
        self.writes["refused"] += len(errors)
        if not errors:
            written = sum(due.is_new for due in batch)
            written += sum(name.startswith(cached_flow.PREFIX) for name, _ in missing)
            self.writes["written"] += written
            self.writes["refreshed"] += len(batch) - written
        self._became(REFUSING if errors else OK, type(errors[0]).__name__ if errors else "")

    async def _keep_asking(self) -> None:
        while True:
            await self._asked.wait()
            batch = [self._wanted.popleft() for _ in range(min(BATCH, len(self._wanted)))]
            if not self._wanted:
                self._asked.clear()
            if batch:
                await self._ask(batch)

    async def _ask(self, batch: list[tuple[FlowKey, int]]) -> None:
        names = [name_of(key) for key, _ in batch]
        hints = [(at, hint_name(key.vip, ssrc)) for at, (key, ssrc) in enumerate(batch) if ssrc]
        # A part, as a value may be of any size, whoever wrote it; one too long is none of ours.
        part = (0, cached_flow.VALUE.size)
        commands = [("GETRANGE", name, *part) for name in (*names, *(name for _, name in hints))]
        try:
            answers = await self._execute(commands, ANSWER_S)
        except (RedisError, OSError, TimeoutError) as error:
            self.lookups["failed"] += len(batch)
            self._became(SILENT, type(error).__name__)
            self._wanted.clear()  # their packets have waited too long
            return
        hinted = {at: value for (at, _), value in zip(hints, answers[len(names) :], strict=True)}
        self._answer(batch, answers[: len(names)], hinted)

    def _answer(
        self, batch: list[tuple[FlowKey, int]], values: list[Any], hinted: dict[int, Any]
    ) -> None:
        found, by_hint, absent = list[bytes](), list[bytes](), list[bytes]()
        for at, ((key, _), value) in enumerate(zip(batch, values, strict=True)):
            hint = hinted.get(at)
            if _is_flow(value):
                found.append(cached_flow.pack_record(key, value))
            elif _is_flow(hint):
                by_hint.append(cached_flow.pack_record(key, hint))
            else:
                absent.append(cached_flow.pack_key(key))
        self.lookups.update(found=len(found), hinted=len(by_hint), absent=len(absent))
        for each, other in zip(_halves(found), _halves(by_hint), strict=True):
            if each or other:
                self._send(Found(_text(each), _text(other)))
        if absent:
            self._send(Absent(_text(absent)))

    async def _execute(self, commands: Iterable[tuple[Any, ...]], within_s: float) -> list[Any]:
        """The answers, errors among them. Raises `RedisError`, `OSError`, `TimeoutError`."""
        pipeline = self._redis.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        async with asyncio.timeout(within_s):
            answers: list[Any] = await pipeline.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, _GONE):
                raise answer
        return answers

    def _became(self, state: str, why: str = "") -> None:
        """Tell a change of state, once."""
        if state == self.state:
            return
        self.state = state
        if state == OK:
            log.info("redis answers: flows are kept there")
        else:
            log.warning("redis is %s (%s): flows go on without it", state, why)


def _names(batch: list[Due]) -> list[tuple[str, str, bytes]]:
    """Verb, name and value of each command of `_first`."""
    return [
        ("SET" if due.is_new else "EXPIRE", name, due.value)
        for due in batch
        for name in _names_of(due)
    ]


def _names_of(due: Due) -> list[str]:
    hints = [hint_name(due.key.vip, due.ssrc)] if due.ssrc else []
    return [name_of(due.key), *hints]


def _first(due: Due) -> list[tuple[Any, ...]]:
    """A new flow is written; of an old one another relay may have a newer idea."""
    if due.is_new:
        return [_set(name, due.value) for name in _names_of(due)]
    return [("EXPIRE", name, EXPIRES_S) for name in _names_of(due)]


def _set(name: str, value: bytes, *condition: str) -> tuple[Any, ...]:
    return ("SET", name, value, "EX", EXPIRES_S, *condition)


def _is_error(answer: object) -> bool:
    return isinstance(answer, Exception)


def _is_flow(value: Any) -> TypeGuard[bytes]:
    return isinstance(value, bytes) and len(value) == cached_flow.VALUE.size


def _halves(records: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """In parts that fit into a message together with others."""
    return records[: BATCH // 2], records[BATCH // 2 :]


def _text(records: list[bytes]) -> str:
    return base64.b64encode(b"".join(records)).decode()
