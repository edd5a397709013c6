"""Where a new call goes: its transceiver, and the ingress whose VIPs stand in the answer.

Pure: the fleet and the dice come in. Of the ready transceivers two are drawn and the less loaded
one is taken, which spreads calls nearly as well as full knowledge does while many replicas decide
on figures a second old. Choosing the cluster and the ingress by the client's place goes before the
draw: `place` narrows the fleet, `draw` picks within it.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from relayctl.wire.address import Address

FULL = 1.0  # load without a free slot


@dataclass(frozen=True, slots=True)
class Transceiver:
    """What is known about one transceiver process."""

    endpoint: Address
    cluster: int
    ready: bool
    load: float = 0.0  # calls / capacity
    reason: str = ""  # why it is not ready


@dataclass(frozen=True, slots=True)
class Ingress:
    """A relay site: the VIPs that clients send to, and the URL of its admin HTTP, if any."""

    name: str
    vips: tuple[Address, ...]
    admin: str | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    transceivers: tuple[Transceiver, ...]
    ingresses: tuple[Ingress, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """The answer: an endpoint for the call and an ingress for its client."""

    transceiver: Transceiver
    ingress: Ingress


def place(fleet: Fleet, dice: random.Random, tried: Collection[Address] = ()) -> Placement | None:
    """Choose for one call, leaving out endpoints that were `tried`. None: nobody can take it."""
    ready = [t for t in fleet.transceivers if t.ready and t.endpoint not in tried]
    if not ready or not fleet.ingresses:
        return None
    return Placement(draw(ready, dice), fleet.ingresses[0])


def draw(transceivers: Sequence[Transceiver], dice: random.Random) -> Transceiver:
    """The less loaded of two at random; with one, that one."""
    pair = dice.sample(transceivers, min(2, len(transceivers)))
    return min(pair, key=lambda transceiver: transceiver.load)
