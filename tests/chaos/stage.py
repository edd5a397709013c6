"""The place where a fault strikes: lab, services, Redis, callers, and the tap on both ends."""

import contextlib
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.account import Caller
from tests.chaos.callers import Callers, calling
from tests.chaos.scenario import Needs
from tests.chaos.tap import Tap
from tests.figures.measurement import expect
from tests.lab.node import Node
from tests.lab.redis_server import RedisServer
from tests.lab.services import Services
from tests.lab.site import Site, in_lab
from tests.lab.starting import program_on
from tests.lab.topology import SIGNALING_INNER, Lab

PASSWORD = "kept-from-every-log"
_FLOWING_S = 15.0  # until the tap has seen both ways of every call
_ATTACHED_S = 60.0


@dataclass
class Stage:
    """What `inject` gets. Times are `time.monotonic()`."""

    needs: Needs
    lab: Lab
    services: Services
    callers: Callers
    tap: Tap
    random: random.Random
    server: RedisServer | None = None
    moments: dict[str, float] = field(default_factory=dict)

    @property
    def site(self) -> Site:
        return self.services.site

    @property
    def redis(self) -> RedisServer:
        assert self.server is not None, "Needs(redis=True)"
        return self.server

    def note(self, what: str) -> float:
        """Keep the moment at which `what` was done; the report shows it."""
        self.moments[what] = now = time.monotonic()
        return now

    def calls(self) -> list[Caller]:
        """Every call that is up now, once both its ways were seen; what was seen before is
        forgotten. Raises `MeasurementError`."""
        self.tap.forget()
        kinds = self.callers.kinds()
        deadline = time.monotonic() + _FLOWING_S
        while (pairs := self.tap.pairs()).keys() < kinds.keys():
            missing = sorted(kinds[ssrc] for ssrc in kinds.keys() - pairs.keys())
            expect(time.monotonic() < deadline, f"no packets both ways: {missing}")
            time.sleep(0.1)
        return [Caller(kind, ssrc, pairs[ssrc]) for ssrc, kind in kinds.items()]

    def attached(self, node: Node | None = None, interface: str = "outer0") -> float:
        """Wait until a program is on the relay's interface; when that was, to 2 ms."""
        relay = node or self.site.relay
        deadline = time.monotonic() + _ATTACHED_S
        while not program_on(relay, interface):
            expect(time.monotonic() < deadline, f"no program on {interface}")
            time.sleep(0.002)
        return time.monotonic()


@contextlib.contextmanager
def stage(needs: Needs, prefix: str, seed: int, lean: int, browsers: bool) -> Iterator[Stage]:
    """Everything up and talking, everything gone at the end."""
    with contextlib.ExitStack() as stack:
        several: dict[str, Any] = {"relays": needs.relays} if needs.relays > 1 else {}
        lab = stack.enter_context(
            Lab(
                prefix,
                hop="fault" if needs.hop else "switch",
                seed=seed,
                transceivers=needs.transceivers,
                **several,
            )
        )
        server = None
        if needs.redis:
            server = stack.enter_context(
                RedisServer(lab.signaling, host=SIGNALING_INNER, password=PASSWORD)
            )
        services = Services(
            in_lab(lab),
            capacity=60,
            echo="opus" if needs.agent == "answers" else "paced",
            redis=server.url if server else "",
            **several,
            **dict(needs.keyword),
        )
        stack.enter_context(services)
        tap = stack.enter_context(Tap(lab.client, lab.transceivers))
        callers = stack.enter_context(calling(services.site, lean, browsers, needs.page_recovers))
        yield Stage(needs, lab, services, callers, tap, random.Random(seed), server)


def describe(needs: Needs) -> str:
    """For people: what is unusual about it."""
    parts = [f"{needs.relays} relay{'s' if needs.relays > 1 else ''}", f"agent {needs.agent}"]
    parts += [word for word in ("redis", "hop") if getattr(needs, word)]
    return ", ".join(parts)
