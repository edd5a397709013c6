"""Backends that are not there, die, are slow, run ahead or talk nonsense: the call has to stay.

One transceiver, one Realtime server of ours that misbehaves by script, a new call for each fault.
A call stayed if its state is `connected`, packets still come, and what is said then is heard by a
backend that is well again.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial

from tests.conversations.append_latency import APPEND, section
from tests.conversations.caller import Caller, Wishes, calling
from tests.conversations.effort import Effort
from tests.conversations.mouth import phrase, phrases
from tests.conversations.service import Service, free_port
from tests.figures.measurement import Findings, Measurement, MeasurementError, expect
from tests.realtime_server.script import Script
from tests.realtime_server.server import RealtimeServer
from tests.report import Target

STARTED, STOPPED = "output_audio_buffer.started", "output_audio_buffer.stopped"
WELL = Script(reply_s=0.4)
GONE = frozenset({"backend_unavailable"})
STRAY = (
    *("not JSON", "[1, 2]", '{"type": 5}', "{}", '{"type": "response.output_audio.delta"}'),
    '{"type": "response.output_audio.delta", "response_id": "r", "item_id": "i", '
    '"output_index": 0, "content_index": 0, "delta": "!not base64!"}',
    '{"type": "conversation.item.added", "item": 7}',
    '{"type": "something.new", "event_id": "e", "more": {"deep": [1, 2, 3]}}',
)
TARGETS = (
    Target("faults_survived", "=", "all"),
    Target("faults_told", "=", "all"),
    Target("faults_memory", "≤", 32, "MB"),
    Target("backend_back", "≤", 1, "s"),
)

_LIVE_S = 0.2  # without a packet: no longer alive
_BACK_S = 15.0
_ERROR_S = 12.0


@dataclass(frozen=True)
class Fault:
    """`errors` are the codes that the client has to be told, no others."""

    name: str
    script: Script
    errors: frozenset[str] = frozenset()
    lasts: bool = False  # until the client was told: no session before
    absent: bool = False  # nobody even listens then
    reply_s: tuple[float, float] | None = None  # how long the sound of a reply has to last


FAULTS = (
    Fault("absent", WELL, GONE, lasts=True, absent=True),
    Fault("dead", Script(die_after_s=0.3, reply_s=3, pace=1), GONE | {"backend_reconnected"}),
    Fault("mute", Script(mute=True), GONE, lasts=True),
    Fault("busy", Script(refuse=429), frozenset({"backend_overloaded"}), lasts=True),
    Fault("slow", Script(think_s=2, pace=0.9, reply_s=1), reply_s=(0.9, 2.5)),
    Fault("fast", Script(pace=10, reply_s=3), reply_s=(2.7, 3.4)),
    Fault("bursty", Script(pace=1, chunk_ms=1000, reply_s=3), reply_s=(2.7, 4.5)),
    Fault("ahead", Script(pace=0, reply_s=119)),
    Fault("overrun", Script(pace=0, reply_s=180), frozenset({"backend_overrun"})),
    Fault("garbage", Script(stray=STRAY, reply_s=0.4)),
)


@dataclass
class Account:
    """What went wrong, by fault."""

    lost: dict[str, str] = field(default_factory=dict)
    untold: dict[str, str] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)  # MB, after each fault
    back_s: dict[str, float] = field(default_factory=dict)  # by length of the outage


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("backend_faults", TARGETS, partial(measure, effort))]


def measure(effort: Effort) -> Findings:
    phrases()  # to read them takes a second, in which nobody would speak
    server = RealtimeServer(WELL, port=free_port())
    account = Account()
    with Service("realtime", section(server)) as service:
        grown = asyncio.run(_suffer(service, server, effort, account))
    return Findings(
        {
            "faults_survived": _all_but(account.lost),
            "faults_told": _all_but(account.untold),
            "faults_memory": grown,
            "backend_back": max(account.back_s.values()),
        },
        {
            "faults": [fault.name for fault in FAULTS],
            "lost": account.lost,
            "untold": account.untold,
            "memory_mb": account.memory,
            "back_s": account.back_s,
        },
    )


def _all_but(failed: dict[str, str]) -> str:
    return f"all but {', '.join(failed)}" if failed else "all"


async def _suffer(
    service: Service, server: RealtimeServer, effort: Effort, account: Account
) -> float:
    """Megabytes that the process has grown by at most, after it was warm."""
    await server.start()
    try:
        async with _call(service) as caller:  # what is loaded once is no growth
            await _answered(caller)
        before = service.memory()
        for fault in FAULTS:
            await _try(service, server, fault, account)
            account.memory[fault.name] = round((service.memory() - before) / 1e6, 1)
        server.script = Script(pace=0, reply_s=119)
        for number in range(effort.overfills):
            async with _call(service) as caller:
                await _answered(caller)
                await asyncio.sleep(_LIVE_S)  # until all of it waits
                grown = service.memory() - before
            account.memory[f"overfill {number + 1}"] = round(grown / 1e6, 1)
        server.script = WELL
        for seconds in effort.outages_s:
            account.back_s[f"{seconds:g}"] = round(await _outage(service, server, seconds), 3)
    finally:
        await server.stop()
    return max(account.memory.values())


async def _try(service: Service, server: RealtimeServer, fault: Fault, account: Account) -> None:
    server.script = fault.script
    if fault.absent:
        await server.stop()
    try:
        async with _call(service) as caller:
            await _endure(service, server, fault, caller)
            _judge_errors(fault, caller, account)
    except MeasurementError as error:
        account.lost[fault.name] = str(error)
    finally:
        if fault.absent:
            with contextlib.suppress(OSError):
                await server.start()


async def _endure(service: Service, server: RealtimeServer, fault: Fault, caller: Caller) -> None:
    """Raises `MeasurementError` if the call did not stay."""
    if fault.lasts:
        await _errors(caller, fault)
        server.script = WELL
    if fault.absent:
        await server.start()
    await caller.until("session.created", within=_BACK_S)
    since = await _answered(caller)
    if fault.reply_s is not None:
        started = await caller.until(STARTED, since=since)
        stopped = await caller.until(STOPPED, since=started.at)
        low, high = fault.reply_s
        lasted = stopped.at - started.at
        expect(low <= lasted <= high, f"the reply lasted {lasted:.2f} s, want {low} to {high}")
    await _errors(caller, fault)
    server.script = WELL
    if fault.script.reply_s > 60:  # it would talk on
        caller.tell({"type": "output_audio_buffer.clear"})
        await caller.until("output_audio_buffer.cleared")
    await _answered(caller)
    await asyncio.sleep(_LIVE_S)
    last = caller.came[-1].at
    expect(time.monotonic() - last < _LIVE_S, "no packets come any more")
    state = service.call(caller.call_id)["state"]
    expect(state == "connected", f"the call is {state}")


async def _answered(caller: Caller) -> float:
    """Say something until a reply is heard; when the words began that were answered."""
    for attempt in range(3):  # what was said while the backend was away may be too old
        since = caller.sent[-1].at if caller.sent else 0.0
        caller.say(phrase(2 + attempt))
        await caller.happens(lambda: not caller.mouth.speaking, "not said")
        with contextlib.suppress(MeasurementError):
            await caller.until(STARTED, since=since, within=5.0)
            return since
    raise MeasurementError("what was said had no reply")


async def _errors(caller: Caller, fault: Fault) -> None:
    """Until the client was told of what it is to be told."""
    with contextlib.suppress(MeasurementError):
        await caller.happens(
            lambda: fault.errors <= _codes(caller), "not all errors came", _ERROR_S
        )


def _judge_errors(fault: Fault, caller: Caller, account: Account) -> None:
    codes = _codes(caller)
    if fault.errors != codes:
        account.untold[fault.name] = f"want {sorted(fault.errors)}, got {sorted(codes)}"


def _codes(caller: Caller) -> set[str]:
    return {str(told.event["error"].get("code")) for told in caller.events("error")}


async def _outage(service: Service, server: RealtimeServer, seconds: float) -> float:
    """From the moment at which the server listens again until it reads speech."""
    async with _call(service) as caller:
        await caller.until("session.created")
        await asyncio.sleep(0.5)
        await server.stop()
        await asyncio.sleep(seconds)
        await server.start()
        since = time.monotonic()

        def heard() -> bool:
            received = server.record.received
            return bool(received) and received[-1].type == APPEND and received[-1].at > since

        await caller.happens(heard, "the backend is not used again", _BACK_S)
        return next(
            entry.at - since
            for entry in server.record.received
            if entry.type == APPEND and entry.at > since
        )


@contextlib.asynccontextmanager
async def _call(service: Service) -> AsyncIterator[Caller]:
    async with calling(service, [Wishes({})]) as (caller,):
        yield caller
