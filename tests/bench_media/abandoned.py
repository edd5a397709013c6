"""Calls that nobody ends properly, and calls that end in whatever state they are in.

Afterwards nothing may be left: no call, entry of a table, timer, task, file descriptor, thread, nor
one object of those that calls are made of.
"""

import asyncio
import collections
import functools
import gc
import os
import threading
import time
from collections.abc import Awaitable, Callable

import pylibsrtp
from aiortc.rtcdatachannel import RTCDataChannel
from OpenSSL import SSL

from tests.bench_media.stage import Stage, offer, play, staged, until
from tests.figures.measurement import Findings, Measurement
from tests.report import Target
from tests.unit.transceiver.harness import Client
from transceiver import ice
from transceiver.call import Call
from transceiver.channels import Channels
from transceiver.dtls import DtlsTransport
from transceiver.media import Media
from transceiver.sctp import Association
from transceiver.stream import Stream

COUNT = 1000
BATCH = 250  # calls that live at a time
SETUP_S, AWAY_S, CONSENT_S = 1.0, 0.5, 1.0
FIRST_PORT = 10_000
KINDS = (
    *(Call, ice.Agent, Stream, DtlsTransport, Media, Channels, Association, RTCDataChannel),
    *(SSL.Connection, pylibsrtp.Session),
)

Play = Callable[[Stage, Client, int], Awaitable[None]]


def measurements() -> list[Measurement]:
    return [
        Measurement(name, (Target(f"{name}_left", "=", 0, "things"),), functools.partial(fun))
        for name, fun in MEASURES.items()
    ]


def measure(name: str, plays: tuple[Play, ...], count: int) -> Findings:
    return play(functools.partial(_scene, name, plays, count))


async def _scene(name: str, plays: tuple[Play, ...], count: int) -> Findings:
    """The `n`-th call plays the `n`-th play, and is then left alone."""
    async with staged(setup_s=SETUP_S, away_after_s=AWAY_S, consent_s=CONSENT_S) as stage:
        await _crowd(stage, plays, len(plays))  # what is made once and kept
        base = _things(stage)
        for at in range(0, count, BATCH):
            await _crowd(stage, plays, min(BATCH, count - at))
        ended = dict(stage.transceiver.counts.ended)
        after = _things(stage)
        left = {thing: n - base[thing] for thing, n in after.items() if n > base[thing]}
    return Findings({f"{name}_left": sum(left.values())}, {"left": left, "ended": ended})


async def _crowd(stage: Stage, plays: tuple[Play, ...], size: int) -> None:
    for n in range(size):
        client = stage.client(FIRST_PORT + n, ssrc=FIRST_PORT + n)
        await plays[n % len(plays)](stage, client, n)
    stage.clients.clear()  # nobody answers any more
    await until(lambda: not len(stage.calls), SETUP_S + CONSENT_S + 10.0)
    await asyncio.sleep(0.05)


def _things(stage: Stage) -> collections.Counter[str]:
    """Everything that a call could leave behind, by name."""
    gc.collect()
    mux = stage.transceiver.mux
    things = collections.Counter(
        {
            "calls": len(stage.calls),
            "entries of the mux": len(mux.table),
            "planned timers": len(mux._wheel),
            "places at the pacer": len(stage.transceiver.pacer),
            "tasks": len(asyncio.all_tasks()),
            "threads": threading.active_count(),
            "file descriptors": len(os.listdir("/proc/self/fd")),
        }
    )
    things.update(type(each).__name__ for each in gc.get_objects() if type(each) in KINDS)
    return things


async def _nothing(stage: Stage, client: Client, n: int) -> None:
    """Only an offer."""


async def _asks(stage: Stage, client: Client, n: int) -> None:
    """Asks, and answers nothing: never proven."""
    client.answers_checks = False
    client.check()
    stage.flush(client)
    await until(lambda: client.responses)


async def _proves(stage: Stage, client: Client, n: int) -> None:
    """ICE is done, DTLS does not begin."""
    await stage.prove(client)


async def _greets(stage: Stage, client: Client, n: int) -> None:
    """A hello, and the handshake stops there."""
    await stage.prove(client)
    client.hello(time.monotonic())
    stage.up(client.address, client.outbox.pop())
    client.dtls = None


async def _connects(stage: Stage, client: Client, n: int) -> None:
    await stage.connect(client)


async def _speaks(stage: Stage, client: Client, n: int) -> None:
    await stage.connect(client)
    assert await stage.hears(client)


async def _restarts(stage: Stage, client: Client, n: int) -> None:
    """A restart that the client forgets about."""
    await stage.connect(client)
    stage.calls.restart(client.call_id, offer(client))


async def _moves(stage: Stage, client: Client, n: int) -> None:
    """Goes on from another address, which never answers."""
    await _speaks(stage, client, n)
    client.speak()
    stage.up((client.address[0], client.address[1] + 20_000), client.outbox.pop())


async def _says_goodbye(stage: Stage, client: Client, n: int) -> None:
    await stage.connect(client)
    assert client.dtls is not None
    client.dtls.close()
    stage.flush(client)


def _then_hung_up(first: Play) -> Play:
    async def play_it(stage: Stage, client: Client, n: int) -> None:
        await first(stage, client, n)
        stage.calls.hang_up(client.call_id)

    return play_it


_OFFERS: tuple[Play, ...] = (_nothing, _asks, _proves, _greets)
_DEAD: tuple[Play, ...] = (_connects, _speaks, _restarts, _moves)
_CLOSED: tuple[Play, ...] = (*map(_then_hung_up, _OFFERS + _DEAD), _says_goodbye)


def measure_offers(count: int = COUNT) -> Findings:
    return measure("abandoned_offers", _OFFERS, count)


def measure_dead(count: int = COUNT) -> Findings:
    return measure("dead_clients", _DEAD, count)


def measure_closed(count: int = COUNT) -> Findings:
    return measure("closed_calls", _CLOSED, count)


MEASURES = {
    "abandoned_offers": measure_offers,
    "dead_clients": measure_dead,
    "closed_calls": measure_closed,
}
