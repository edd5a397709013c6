"""What a script does and says: speak, send, wait, and at the end judge what the client was told."""

import json
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.conversations.mouth import RATE, Mouth, phrases
from tests.conversations.scripts import order
from tests.conversations.stage import STEP_S, Stage
from tests.lab.ear import Row
from transceiver.events import Event

PATIENCE_S = 12.0  # for an event

SERVER_VAD: Mapping[str, Any] = {"type": "server_vad"}


class Missed(AssertionError):
    """It did not go as the script says."""


class Talk:
    """`seed` chooses phrases and moments; `detection` is the session's turn_detection."""

    def __init__(
        self,
        stage: Stage,
        seed: int = 0,
        *,
        beta: bool = False,
        detection: Mapping[str, Any] = SERVER_VAD,
    ) -> None:
        self.chance = random.Random(seed)
        self.stage = stage
        self._beta = beta
        self._detection = detection
        self._phrase = self.chance.randrange(len(phrases()))
        self._waited = 0  # events that are behind the one that was waited for last

    @property
    def now(self) -> float:
        return self.stage.now

    @property
    def mouth(self) -> Mouth:
        return self.stage.mouth

    @property
    def ended(self) -> bool:
        return self.stage.ended

    async def open(self) -> None:
        """The data channel; the session is there when this returns."""
        await self.happens(lambda: self.stage.channel_open, "the channel does not open")
        await self.until("session.created")

    def phrase(self, seconds: float | None = None) -> Row:
        """Another one each time, one of at most 3 s, or said so often that it is `seconds` long."""
        while True:
            self._phrase = (self._phrase + 1) % len(phrases())
            samples = phrases()[self._phrase]
            if seconds is None and len(samples) <= 3 * RATE:
                return samples
            if seconds is not None and len(samples) >= min(seconds, 2.0) * RATE:
                return samples[: round(seconds * 50) * (RATE // 50)]

    def listens(self, **fields: Any) -> dict[str, Any]:
        """A session that takes turns as this one does, but for `fields`."""
        return {"audio": {"input": {"turn_detection": {**self._detection, **fields}}}}

    def send(self, event: Mapping[str, Any]) -> None:
        self.send_text(json.dumps(event))

    def send_text(self, text: str) -> None:
        """Whatever it is."""
        self.stage.send(text)

    async def update(self, session: Mapping[str, Any]) -> Event:
        """`session.update`, and what the server makes of it."""
        self.send({"type": "session.update", "session": {"type": "realtime", **session}})
        return await self.until("session.updated")

    async def refused(self, event_id: str) -> dict[str, Any]:
        """The next error, which has to be about the event of this id."""
        event = await self.until("error")
        error: dict[str, Any] = event["error"]
        self.expect(error["event_id"] == event_id, f"the error is about {error['event_id']}")
        return error

    def begin(self, samples: Row) -> None:
        """Start to speak; time passes elsewhere."""
        self.mouth.say(samples)

    async def say(self, samples: Row) -> None:
        """Speak to the end."""
        self.mouth.say(samples)
        while self.mouth.speaking:
            await self.step()

    async def quiet(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds - STEP_S / 2
        while self.now < until:
            await self.step()

    async def step(self) -> None:
        await self.stage.step()

    async def until(self, kind: str, within: float = PATIENCE_S) -> Event:
        """The next event of this kind after the one that was waited for last."""
        name = self._name(kind)

        def found() -> bool:
            return name in self._kinds()[self._waited :]

        await self.happens(found, f"no {name}", within)
        at = self._kinds().index(name, self._waited)
        self._waited = at + 1
        return self.stage.heard.events[at]

    async def happens(
        self, what: Callable[[], bool], otherwise: str, within: float = PATIENCE_S
    ) -> None:
        """Raises `Missed`."""
        until = self.now + within
        while not what():
            if self.now > until:
                recent = " ".join(self._kinds()[-10:])
                raise Missed(f"{otherwise} in {within:g} s; the last events: {recent}")
            await self.step()

    def all(self, kind: str) -> list[Event]:
        """The events of this kind so far."""
        return [e for e in self.stage.heard.events if e["type"] == self._name(kind)]

    def saw(self, *parts: order.Part) -> None:
        """The client was told these, in this order, and nothing else. Raises `Missed`."""
        want = [kind for part in parts for kind in part]
        if self._beta:
            want = list(order.beta(tuple(want)))
        free = order.FREE | set(order.beta(tuple(order.FREE)))
        got = [kind for kind in self._kinds() if kind not in free]
        if got != want:
            at = next(
                (n for n, pair in enumerate(zip(got, want, strict=False)) if pair[0] != pair[1]),
                min(len(got), len(want)),
            )
            raise Missed(
                f"after {at} events as they should be came {got[at : at + 4]}, "
                f"want {want[at : at + 4]}"
            )

    def silent(self, since: float, until: float) -> None:
        """The server was not heard then. Raises `Missed`."""
        loud = self.stage.heard.loud_between(since, until)
        self.expect(not loud, f"{loud} packets with sound where there should be none")

    def sounded(self, seconds: float, *, since: float) -> None:
        """The server was heard for so long, pauses apart. Raises `Missed`."""
        heard = self.stage.heard.loud_between(since, self.now) * 0.02
        self.expect(heard >= seconds, f"{heard:.2f} s of sound, want {seconds:.2f}")

    def expect(self, happened: object, what: str) -> None:
        """Raises `Missed` with `what` unless it happened."""
        if not happened:
            raise Missed(what)

    def _kinds(self) -> list[str]:
        return self.stage.heard.kinds()

    def _name(self, kind: str) -> str:
        return "".join(order.beta((kind,))) if self._beta else kind


Script = Callable[[Talk], Awaitable[None]]
