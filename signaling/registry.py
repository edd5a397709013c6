"""Which transceivers take calls: the list of the configuration, asked once a second.

The last answer stands until the next one; a transceiver that fails a call, or is full, is taken out
until then.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Iterable

from relayctl.wire.address import Address
from relayctl.wire.cluster import Clusters
from signaling.control import Control, Readiness
from signaling.steering import FULL, Transceiver

INTERVAL_S = 1.0


class Registry:
    """The transceivers and their readiness."""

    def __init__(
        self,
        control: Control,
        endpoints: Iterable[Address],
        clusters: Clusters,
        on_change: Callable[[Transceiver], None] = lambda transceiver: None,
    ) -> None:
        self._control = control
        self._on_change = on_change
        self._transceivers = {
            endpoint: Transceiver(endpoint, clusters.owner(endpoint) or 0, ready=False)
            for endpoint in endpoints
        }

    def transceivers(self) -> tuple[Transceiver, ...]:
        return tuple(self._transceivers.values())

    def out(self, endpoint: Address, *, full: bool = False) -> None:
        """It failed a call, or is full: no more calls until it says that it is ready."""
        load = FULL if full else self._transceivers[endpoint].load
        self._set(endpoint, Readiness(False, load, "full" if full else "unreachable"))

    async def refresh(self) -> None:
        """Ask every transceiver, all at once."""
        endpoints = tuple(self._transceivers)
        answers = await asyncio.gather(*map(self._control.readiness, endpoints))
        for endpoint, answer in zip(endpoints, answers, strict=True):
            self._set(endpoint, answer)

    async def run(self) -> None:
        """Keep asking; ends when it is cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(INTERVAL_S)

    def _set(self, endpoint: Address, now: Readiness) -> None:
        before = self._transceivers[endpoint]
        after = dataclasses.replace(before, ready=now.ready, load=now.load, reason=now.reason)
        self._transceivers[endpoint] = after
        if before.ready is not after.ready:
            self._on_change(after)
