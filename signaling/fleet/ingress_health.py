"""Which ingresses clients may be sent to: each one's health URLs, asked once a second.

Thin I/O. A relay that says no (it drains) is down at once; one that does not answer, when that
happens twice in a row. An ingress is down when all of its relays are: the router sends a VIP's
packets to those that are ready. One without a URL is never down.
"""

import asyncio
from collections.abc import Callable, Iterable

import httpx

from signaling.fleet.steering import Ingress

INTERVAL_S = 1.0
DEADLINE_S = 0.5
PATIENCE = 2  # rounds without an answer


class IngressHealth:
    """`on_change` is told an ingress and what is wrong with it, "" if nothing is any more."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        ingresses: Iterable[Ingress],
        on_change: Callable[[Ingress, str], None] = lambda ingress, fault: None,
    ) -> None:
        self._client = client
        self._asked = tuple(ingress for ingress in ingresses if ingress.health)
        self._on_change = on_change
        urls = [url for ingress in self._asked for url in ingress.health]
        self._unanswered = dict.fromkeys(urls, 0)
        self._faults = dict.fromkeys(urls, "")
        self.down: frozenset[str] = frozenset()

    async def refresh(self) -> None:
        """Ask all of them, at the same time. Never raises."""
        await asyncio.gather(*map(self._ask, self._asked))

    async def run(self) -> None:
        """Keep asking; ends when it is cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(INTERVAL_S)

    async def _ask(self, ingress: Ingress) -> None:
        await asyncio.gather(*map(self._ask_relay, ingress.health))
        faults = [self._faults[url] for url in ingress.health]
        self._set(ingress, ", ".join(dict.fromkeys(faults)) if all(faults) else "")

    async def _ask_relay(self, url: str) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                reply = await self._client.get(url)
        except (httpx.HTTPError, TimeoutError):
            self._unanswered[url] += 1
            if self._unanswered[url] >= PATIENCE:
                self._faults[url] = "does not answer"
            return
        self._unanswered[url] = 0
        self._faults[url] = "" if reply.status_code == 200 else f"says {reply.status_code}"

    def _set(self, ingress: Ingress, fault: str) -> None:
        if bool(fault) == (ingress.name in self.down):
            return
        self.down = self.down | {ingress.name} if fault else self.down - {ingress.name}
        self._on_change(ingress, fault)
