"""How long speech is in the transceiver on its way to the backend, by one machine's clock.

From the moment at which a caller sends a packet to that at which the backend, a Realtime server of
ours, has read the `input_audio_buffer.append` with its sound. Server and caller are one process, so
that what they keep each other waiting counts too.
"""

import asyncio
import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from tests.audio.wire_to_wire import spread
from tests.conversations.caller import Caller, Sent, Wishes, calling
from tests.conversations.effort import Effort
from tests.conversations.mouth import phrase, phrases
from tests.conversations.service import Service, free_port
from tests.figures.measurement import Findings, Measurement, expect
from tests.realtime_server.record import Entry
from tests.realtime_server.server import RealtimeServer
from tests.report import Target

APPEND = "input_audio_buffer.append"
PACKET_BYTES = 960  # of samples: 20 ms at 24 kHz
PAUSE_S = 0.3
LAST_S = 0.5  # for what is under way
TARGETS = (
    Target("append_p50", "≤", 5, "ms"),
    Target("append_p95", "≤", 40, "ms"),
    Target("first_append_while_speaking", "=", True),
)


def measurements(effort: Effort) -> list[Measurement]:
    return [Measurement("append_latency", TARGETS, partial(measure, effort))]


def measure(effort: Effort) -> Findings:
    phrases()  # to read them takes a second, in which nobody would speak
    server = RealtimeServer(port=free_port())
    with Service("realtime", section(server)) as service:
        sent, received = asyncio.run(_record(service, server, effort.appends_s))
    took = latencies(sent, received)
    expect(len(took) > 0.9 * len(sent), f"{len(took)} of {len(sent)} packets were appended")
    expect(min(took) >= 0, f"an append came {-min(took) * 1e3:.1f} ms before its packet")
    ms = np.array(took) * 1e3
    return Findings(
        {
            "append_p50": float(np.percentile(ms, 50)),
            "append_p95": float(np.percentile(ms, 95)),
            "first_append_while_speaking": first_while_speaking(sent, took),
        },
        {"packets": len(sent), "appended": len(took), "took_ms": spread(ms)},
    )


def section(server: RealtimeServer) -> dict[str, dict[str, object]]:
    """The configuration of a transceiver whose backend is `server`."""
    return {"realtime": {"url": server.url, "model": "test-model"}}


def latencies(sent: Sequence[Sent], received: Sequence[Entry]) -> list[float]:
    """Seconds, of each packet that was appended, the last of `sent` last.

    What came first may be missing, for the backend was not there yet; all after it is there."""
    arrivals = [
        entry.at
        for entry in received
        if entry.type == APPEND
        for _ in range(entry.event["bytes"] // PACKET_BYTES)
    ][-len(sent) :]
    return [at - one.at for one, at in zip(sent[-len(arrivals) :], arrivals, strict=True)]


def first_while_speaking(sent: Sequence[Sent], took: Sequence[float]) -> bool:
    """Whether each phrase had begun to arrive before its last packet was sent."""
    appended = list(zip(sent[-len(took) :], took, strict=True))
    starts = [n for n in range(1, len(appended)) if _begins(appended[n - 1][0], appended[n][0])]
    for start in starts:
        said = [one for one, _ in appended[start:]]
        count = next((n for n, one in enumerate(said) if not one.speech), len(said))
        first, late = appended[start]
        if first.at + late >= said[count - 1].at:
            return False
    return bool(starts)


def _begins(before: Sent, one: Sent) -> bool:
    return one.speech and not before.speech


async def _record(
    service: Service, server: RealtimeServer, seconds: float
) -> tuple[list[Sent], list[Entry]]:
    async with server, calling(service, [Wishes({})]) as (caller,):
        await caller.until("session.created")
        await _chat(caller, seconds)
        caller.muted = True
        await asyncio.sleep(LAST_S)
        return caller.sent, list(server.record.received)


async def _chat(caller: Caller, seconds: float) -> None:
    until, number = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        caller.say(phrase(number))
        await caller.happens(lambda: not caller.mouth.speaking, "not said")
        await asyncio.sleep(PAUSE_S)
        number += 1
