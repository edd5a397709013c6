"""What `scenario.mjs` does with a browser, with a client of Python: silence, a turn, its reply,
cuts of others, a restart, and the client's own way to hang up.

Moments are seconds since the beginning.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.interop.listen import LOUD
from tests.lab import speech

_LIMIT_S = 20.0  # of any step
_SILENT_S = 1.5
_TURN_S = 2.6
_INTERRUPTION_S = 1.2
_HEARD_S = 0.5  # of a reply, before it is cut
_CUT_S = 1.8  # that a cut reply is listened to
_HUSH_S = 1.2  # of silence: the reply is over
_POLL_S = 0.05


class Talker(ABC):
    """A client under trial. `speaking` gates its microphone."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.speaking = False
        self.messages: list[str] = []  # of its channel, or of what else tells it events
        self.call_id = ""
        self.own: dict[str, Any] = {}  # what it says of itself
        self.sound: list[speech.Samples] = []  # that came, 48 kHz
        self.levels: list[tuple[float, float]] = []  # of each piece of it, when it came

    @abstractmethod
    async def connect(self) -> None:
        """Until media can flow, and events."""

    @abstractmethod
    async def hang_up(self) -> None:
        """The client's own way."""

    async def interrupt(self) -> None:
        """Cut a reply by the client's own way."""
        raise NotImplementedError

    async def restart(self) -> tuple[str, str]:
        """ICE restart; the server's ufrag before and after."""
        raise NotImplementedError

    async def trouble(self) -> None:
        """Something more to try, once a reply is being made."""
        return

    def now(self) -> float:
        return time.monotonic() - self.began

    def keep(self, samples: speech.Samples) -> None:
        """Sound has come."""
        self.sound.append(samples)
        self.levels.append((self.now(), float(np.sqrt(np.mean(samples**2)))))

    def heard(self) -> speech.Samples:
        return np.concatenate(self.sound or [np.zeros(0, np.float32)])


async def converse(
    client: Talker, interrupts: Sequence[str], *, restarts: bool, down: bool = True
) -> dict[str, Any]:
    """The report, in the shape of the scenario's. Raises `TimeoutError`."""
    marks: dict[str, float] = {}
    async with asyncio.timeout(_LIMIT_S):
        await client.connect()
    marks["silent"] = client.now()
    await asyncio.sleep(_SILENT_S)
    marks["said"] = await _say(client, _TURN_S)
    await _replied(client, marks["said"], "to the first turn")
    marks["replied"] = client.now()
    await client.trouble()
    await _hushed(client)
    marks["hushed"] = client.now()
    cuts = [await _cut(client, way) for way in interrupts]
    restart = await _restart(client) if restarts else None
    await client.hang_up()
    return {
        "calls": [client.call_id],
        "marks": marks,
        "cuts": cuts,
        "restart": restart,
        "own": client.own,
        "levels": client.levels,
        "messages": client.messages,
    }


async def _say(client: Talker, seconds: float) -> float:
    at = client.now()
    client.speaking = True
    await asyncio.sleep(seconds)
    client.speaking = False
    return at


async def _cut(client: Talker, way: str) -> dict[str, Any]:
    said = await _say(client, _INTERRUPTION_S)
    await _replied(client, said + 0.5, "to cut")
    await asyncio.sleep(_HEARD_S)
    at = client.now()
    if way == "speech":
        await asyncio.gather(_say(client, _INTERRUPTION_S), asyncio.sleep(_CUT_S))
    else:
        await client.interrupt()
        await asyncio.sleep(_CUT_S)
    until = client.now()
    if way == "speech":  # words that cut are answered, too
        await _replied(client, until, "to the words that cut")
    await _hushed(client)
    return {"way": way, "at": at, "until": until}


async def _restart(client: Talker) -> dict[str, Any]:
    async with asyncio.timeout(_LIMIT_S):
        before, after = await client.restart()
    said = await _say(client, _INTERRUPTION_S)
    await _replied(client, said, "after the restart")
    await _hushed(client)
    return {"before": before, "after": after, "said": said, "until": client.now()}


async def _replied(client: Talker, since: float, to: str) -> None:
    def loud() -> bool:
        return sum(rms > LOUD for at, rms in client.levels if at > since) >= 5

    await _until(loud, f"no reply {to}")


async def _hushed(client: Talker) -> None:
    def quiet() -> bool:
        recent = [rms for at, rms in client.levels if at > client.now() - _HUSH_S]
        return len(recent) > 25 and max(recent) < LOUD

    await _until(quiet, "no end of the reply")


async def _until(test: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while not test():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{otherwise} in {_LIMIT_S:g} s")
        await asyncio.sleep(_POLL_S)
