"""The core that every face calls: create, restart, hang up, describe.

Stateless. A call id holds the call's first route token, so with the route keys any replica finds
the owner by opening it; there is no table of calls and no look-up.
"""

import asyncio
import dataclasses
import random
from collections.abc import Callable, Collection, Mapping
from typing import Any

from relayctl.wire import address
from relayctl.wire.address import Address
from relayctl.wire.call_id import CallId, CallIdError, parse
from relayctl.wire.cluster import Clusters, RouteError
from relayctl.wire.route_token import Key, TokenError, open_token
from signaling.fleet.control import DEFAULT_RETRY_S, Control, Created, Unreachable
from signaling.fleet.location import NOWHERE, Where
from signaling.fleet.registry import Registry
from signaling.fleet.steering import (
    FULL,
    Fleet,
    Placement,
    candidates,
    join,
    less_loaded,
    pair,
    place,
)
from signaling.ice import Credentials
from signaling.refusal import Code, Refused
from signaling.session import Session

MAX_TRIES = 3  # transceivers that are offered one call
MAX_DRAWS = 3  # pairs that turn out to take no calls, for each of these
HAND_OVER_S = 0.3  # that the owner of a call to be resumed may take: mostly it is gone
_FULL = ("overloaded", Code.ALL_FULL)  # what a transceiver calls it, and where it says nothing
SOON_S = 1  # Retry-After when the fleet may be back with the next round of readiness


class Calls:
    """Begins calls and finds their owners."""

    def __init__(
        self,
        control: Control,
        registry: Registry,
        fleet: Callable[[], Fleet],
        keys: Mapping[int, Key],
        clusters: Clusters,
        dice: random.Random,
        on_placed: Callable[[Placement], None] = lambda placement: None,
    ) -> None:
        """`fleet`: as it is known now. `on_placed` is told of every call that was begun."""
        self._control = control
        self._registry = registry
        self._fleet = fleet
        self._keys = keys
        self._clusters = clusters
        self._dice = dice
        self._on_placed = on_placed

    async def create(
        self,
        offer: str,
        dialect: str,
        session: Session | None = None,
        *,
        subject: str = "",
        where: Where = NOWHERE,
        resume: str | None = None,
    ) -> Created:
        """Place a call and begin it. A transceiver that does not answer is skipped, and one that
        cannot do it, once. `resume`: id of the call that it carries on. Raises `Refused`."""
        old = None if resume is None else await self._hand_over(resume, subject)
        tried: set[Address] = set()
        failed: Refused | None = None
        while len(tried) < MAX_TRIES and (placement := await self._place(tried, where)):
            endpoint = placement.transceiver.endpoint
            tried.add(endpoint)
            try:
                created = await self._control.create(
                    endpoint, offer, placement.ingress.vips, dialect, session, subject, old
                )
                self._check_owner(created, endpoint)
            except Unreachable:
                self._registry.out(endpoint)
            except Refused as refused:
                if refused.status == 503:
                    self._registry.out(endpoint, refused.code, full=refused.code in _FULL)
                elif refused.code != Code.TRANSCEIVER_ERROR:
                    raise
                if failed is not None:
                    break  # many that retry make the fleet's day no better
                failed = refused
            else:
                self._on_placed(placement)
                return dataclasses.replace(
                    created, ingress=placement.ingress.name, steering=placement.text
                )
        raise self._nowhere(failed)

    async def _hand_over(self, text: str, subject: str) -> CallId:
        """Let go of the call of id `text`, if its owner still has it; whether it can be carried on
        is found out by whoever does. Raises `Refused`."""
        call_id, endpoint = self.owner(text)
        try:
            async with asyncio.timeout(HAND_OVER_S):
                await self._control.hand_over(endpoint, call_id, subject)
        except (Unreachable, TimeoutError):  # as is to be expected
            self._registry.out(endpoint)
        except Refused as refused:
            if refused.code == Code.RESUME_UNAVAILABLE:
                raise
        return call_id

    async def restart(self, text: str, offer: str | Credentials) -> str:
        """A later offer for the call of id `text`, or new ICE credentials alone: the answer.
        Raises `Refused`."""
        call_id, endpoint = self.owner(text)
        try:
            return await self._control.restart(endpoint, call_id, offer)
        except Unreachable:
            self._registry.out(endpoint)
            raise owner_gone() from None

    async def hangup(self, text: str, subject: str = "") -> None:
        """End the call of id `text`; of `subject`, if one is named. Raises `Refused`."""
        call_id, endpoint = self.owner(text)
        try:
            await self._control.end(endpoint, call_id, subject)
        except Unreachable:
            raise owner_gone() from None

    async def describe(self, text: str) -> tuple[Address, dict[str, Any]]:
        """The owner's endpoint and what it says of the call of id `text`. Raises `Refused`."""
        call_id, endpoint = self.owner(text)
        try:
            return endpoint, await self._control.describe(endpoint, call_id)
        except Unreachable:
            raise owner_gone() from None

    async def living(self, text: str) -> dict[str, Any]:
        """What the owner says of the call of id `text`, which goes on. Raises `Refused`."""
        _, call = await self.describe(text)
        if call.get("state") == "ended":
            raise Refused(Code.CALL_ENDED, "the call has ended")
        return call

    def ready(self) -> None:
        """Raises `Refused` when a call could go nowhere now."""
        if place(self._fleet(), self._dice) is None:
            raise self._nowhere(None)

    async def _place(self, tried: Collection[Address], where: Where) -> Placement | None:
        """As `steering.place`; what is known of the two that were drawn is made sure of."""
        for _ in range(MAX_DRAWS):
            fleet = self._fleet()
            drawn = pair(candidates(fleet, tried, where), self._dice)
            takers = await self._registry.confirm(drawn)
            if takers:
                return join(fleet, less_loaded(takers), self._dice, where)
        return None

    def owner(self, text: str) -> tuple[CallId, Address]:
        """Who has the call of id `text`. Forged, foreign and garbled ids look alike from outside.
        Raises `Refused`."""
        try:
            call_id = parse(text)
            route = open_token(self._keys, call_id.token.encode())
            return call_id, self._clusters.endpoint(route)
        except (CallIdError, TokenError, RouteError):
            raise Refused(Code.CALL_NOT_FOUND, "there is no call of this id", param="id") from None

    def _check_owner(self, created: Created, endpoint: Address) -> None:
        """Raises `Refused` if the new call could not be found again by its id."""
        try:
            owner = self.owner(created.call_id.render())[1]
        except Refused:
            owner = None
        if owner != endpoint:
            where = address.render(endpoint)
            detail = "calls with ids of others: give both the same `keys_file` and clusters"
            raise Refused(Code.TRANSCEIVER_ERROR, f"the transceiver at {where} makes {detail}")

    def _nowhere(self, failed: Refused | None) -> Refused:
        if failed is not None and failed.status != 503:
            return failed
        fleet = self._fleet()
        why = "" if failed is None else failed.code
        if why in _FULL or (not why and any(t.load >= FULL for t in fleet.transceivers)):
            return Refused(
                Code.ALL_FULL,
                "no transceiver has a free slot; try again later",
                retry_after_s=(failed and failed.retry_after_s) or DEFAULT_RETRY_S,
            )
        if not fleet.ingresses:
            return Refused(
                Code.NO_INGRESS,
                "no relay is configured; add an [[ingress]] section",
                retry_after_s=DEFAULT_RETRY_S,
            )
        return Refused(
            Code.NO_TRANSCEIVER,
            f"no transceiver is ready to take a call{why and f' ({why})'}; try again soon",
            retry_after_s=SOON_S,
        )


def owner_gone() -> Refused:
    return Refused(Code.OWNER_GONE, "the transceiver that had this call does not answer")
