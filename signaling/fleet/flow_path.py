"""Which way the packets of a call take: asked of the relays that carry its VIP.

Thin I/O. The answer informs a person; nothing depends on it, so whatever fails is "unknown".
"""

import asyncio
import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from relayctl.wire import address
from relayctl.wire.address import Address, AddressError
from signaling.fleet.steering import Ingress

DEADLINE_S = 0.3

_NO_RECORD = (ValueError, KeyError, TypeError, AttributeError, OverflowError)


class Path(enum.StrEnum):
    """Who forwards the packets of a call."""

    KERNEL = "kernel"
    USER = "user"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a relay knows of a flow: `reason` why not the kernel. No `ingress`: none knows it."""

    path: Path = Path.UNKNOWN
    reason: str | None = None
    ingress: str | None = None
    packets: Mapping[str, int] | None = None


class FlowPaths:
    """The admin HTTP of the configured relays."""

    def __init__(self, client: httpx.AsyncClient, ingresses: tuple[Ingress, ...]) -> None:
        self._client = client
        self._ingresses = ingresses

    async def find(self, client: object, vip: object) -> Sighting:
        """Ask every relay of `vip` for the flow of `client` (`<ip>:<port>` texts). Never raises."""
        try:
            key = address.parse(str(client)), address.parse(str(vip))
        except AddressError:
            return Sighting()
        asked = [(i.name, url) for i in self._ingresses if key[1] in i.vips for url in i.admin]
        for sighting in await asyncio.gather(*(self._ask(*each, *key) for each in asked)):
            if sighting.ingress is not None:
                return sighting
        return Sighting()

    async def _ask(self, ingress: str, admin: str, client: Address, vip: Address) -> Sighting:
        url = f"{admin}/v1/flows/{quote(address.render(client), safe='')}"
        try:
            async with asyncio.timeout(DEADLINE_S):
                reply = await self._client.get(url, params={"vip": address.render(vip)})
            return _read(ingress, reply.json()) if reply.status_code == 200 else Sighting()
        except (
            httpx.HTTPError,
            TimeoutError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
        ):
            return Sighting()


def _read(ingress: str, flow: Any) -> Sighting:
    """Out of the relay's flow record. Raises what a record of another form makes of that."""
    packets = {way: int(flow["packets"][way]) for way in ("up", "down")}
    reason = flow.get("reason")
    return Sighting(Path(flow["path"]), None if reason is None else str(reason), ingress, packets)
