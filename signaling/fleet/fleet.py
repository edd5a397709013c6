"""The fleet as signaling sees it now: its transceivers, its ingresses, and which of them serve.

Composes registry and ingress health; what changes is logged and counted.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

import httpx

from relayctl.wire import address
from relayctl.wire.redis_client import Client
from signaling.config import SignalingConfig
from signaling.fleet.announcements import Announcements
from signaling.fleet.control import Control
from signaling.fleet.ingress_health import IngressHealth
from signaling.fleet.registry import Registry
from signaling.fleet.steering import Fleet, Ingress, Transceiver
from signaling.metrics import Metrics


class FleetWatch:
    """`client` reaches the ingresses' health URLs; without `redis` the list is all there is."""

    def __init__(
        self,
        config: SignalingConfig,
        control: Control,
        client: httpx.AsyncClient,
        redis: Client | None,
        metrics: Metrics,
        log: logging.Logger,
    ) -> None:
        self._metrics = metrics
        self._log = log
        self.ingresses = tuple(section.ingress() for section in config.ingresses)
        self._places = config.places
        clusters = config.routing()
        self.registry = Registry(
            control,
            config.endpoints,
            clusters,
            self._transceiver_changed,
            announcements=Announcements(redis, clusters) if redis is not None else None,
            on_ignored=lambda reason, count: metrics.registry_ignored.labels(reason).inc(count),
        )
        metrics.registry_silent.set_function(lambda: self.registry.silent)
        self._health = IngressHealth(client, self.ingresses, self._ingress_changed)

    def fleet(self) -> Fleet:
        return Fleet(self.registry.transceivers(), self.ingresses, self._health.down, self._places)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Looked at once when it begins, and once a second until it ends."""
        await asyncio.gather(self.registry.refresh(), self._health.refresh())
        asking = [asyncio.create_task(each.run()) for each in (self.registry, self._health)]
        try:
            yield
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    def _transceiver_changed(self, transceiver: Transceiver) -> None:
        state = "ready" if transceiver.ready else f"not ready: {transceiver.reason}"
        self._log.info("transceiver %s is %s", address.render(transceiver.endpoint), state)
        ready = sum(each.ready for each in self.registry.transceivers())
        self._metrics.transceivers_ready.set(ready)

    def _ingress_changed(self, ingress: Ingress, fault: str) -> None:
        self._log.info("ingress %s %s", ingress.name, fault or "is healthy")
        self._metrics.ingresses_down.set(len(self._health.down))
