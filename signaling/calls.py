"""The core that every face calls: create, restart, hang up, describe.

Stateless. A call id holds the call's first route token, so with the route keys any replica finds
the owner by opening it; there is no table of calls and no look-up.
"""

import random
from collections.abc import Mapping
from typing import Any

from relayctl.wire.address import Address
from relayctl.wire.call_id import CallId, CallIdError, parse
from relayctl.wire.cluster import Clusters, RouteError
from relayctl.wire.route_token import Key, TokenError, open_token
from signaling.control import DEFAULT_RETRY_S, Control, Created, Unreachable
from signaling.location import NOWHERE, Where
from signaling.refusal import Code, Refused
from signaling.registry import Registry
from signaling.session import Session
from signaling.steering import FULL, Fleet, Ingress, place

MAX_TRIES = 3  # transceivers asked for one call
SOON_S = 1  # Retry-After when the fleet may be back with the next round of readiness


class Calls:
    """Begins calls and finds their owners."""

    def __init__(
        self,
        control: Control,
        registry: Registry,
        ingresses: tuple[Ingress, ...],
        keys: Mapping[int, Key],
        clusters: Clusters,
        dice: random.Random,
    ) -> None:
        self._control = control
        self._registry = registry
        self._ingresses = ingresses
        self._keys = keys
        self._clusters = clusters
        self._dice = dice

    async def create(
        self,
        offer: str,
        dialect: str,
        session: Session | None = None,
        *,
        subject: str = "",
        where: Where = NOWHERE,
    ) -> Created:
        """Place a call and begin it. A transceiver that fails is skipped. Raises `Refused`."""
        tried: set[Address] = set()
        full: Refused | None = None
        while len(tried) < MAX_TRIES:
            placement = place(self._fleet(), self._dice, tried)
            if placement is None:
                break
            endpoint = placement.transceiver.endpoint
            tried.add(endpoint)
            try:
                return await self._control.create(
                    endpoint, offer, placement.ingress.vips, dialect, session, subject
                )
            except Unreachable:
                self._registry.out(endpoint)
            except Refused as refused:
                if refused.status != 503:
                    raise
                full = refused
                self._registry.out(endpoint, full=True)
        raise self._nowhere(full)

    async def restart(self, text: str, offer: str) -> str:
        """New ICE credentials for the call of id `text`: the answer. Raises `Refused`."""
        call_id, endpoint = self._owner(text)
        try:
            return await self._control.restart(endpoint, call_id, offer)
        except Unreachable:
            raise _owner_gone() from None

    async def hangup(self, text: str) -> None:
        """End the call of id `text`. Raises `Refused`."""
        call_id, endpoint = self._owner(text)
        try:
            await self._control.end(endpoint, call_id)
        except Unreachable:
            raise _owner_gone() from None

    async def describe(self, text: str) -> tuple[Address, dict[str, Any]]:
        """The owner's endpoint and what it says of the call of id `text`. Raises `Refused`."""
        call_id, endpoint = self._owner(text)
        try:
            return endpoint, await self._control.describe(endpoint, call_id)
        except Unreachable:
            raise _owner_gone() from None

    def ready(self) -> None:
        """Raises `Refused` when a call could go nowhere now."""
        if place(self._fleet(), self._dice) is None:
            raise self._nowhere(None)

    def _fleet(self) -> Fleet:
        return Fleet(self._registry.transceivers(), self._ingresses)

    def _owner(self, text: str) -> tuple[CallId, Address]:
        """Forged, foreign and garbled ids look alike from outside."""
        try:
            call_id = parse(text)
            route = open_token(self._keys, call_id.token.encode())
            return call_id, self._clusters.endpoint(route)
        except (CallIdError, TokenError, RouteError):
            raise Refused(Code.CALL_NOT_FOUND, "there is no call of this id", param="id") from None

    def _nowhere(self, full: Refused | None) -> Refused:
        if full is not None or any(t.load >= FULL for t in self._registry.transceivers()):
            return Refused(
                Code.ALL_FULL,
                "no transceiver has a free slot; try again later",
                retry_after_s=(full and full.retry_after_s) or DEFAULT_RETRY_S,
            )
        if not self._ingresses:
            return Refused(
                Code.NO_INGRESS,
                "no relay is configured; add an [[ingress]] section",
                retry_after_s=DEFAULT_RETRY_S,
            )
        return Refused(
            Code.NO_TRANSCEIVER,
            "no transceiver is ready to take a call; try again soon",
            retry_after_s=SOON_S,
        )


def _owner_gone() -> Refused:
    return Refused(Code.OWNER_GONE, "the transceiver that had this call does not answer")
