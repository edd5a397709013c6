"""Where a new call goes: its transceiver, and the ingress whose VIPs stand in the answer.

Pure: the fleet, the client's place and the dice come in. The rule, in this order:

1. the nearest cluster that has a ready transceiver with a free slot, and an ingress;
2. of its ready transceivers two are drawn and the less loaded one is taken, which spreads calls
   nearly as well as full knowledge does while many replicas decide on figures a second old;
3. the nearest ingress that is healthy and has a route to that cluster.

Near is first what bears the client's region, then what is fewer kilometres away, then what has no
known place. Equally near ones share the calls. If no ingress at all is healthy, all are taken for
healthy: it is more likely that signaling cannot ask than that every relay is down.
"""

import enum
import math
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from relayctl.wire.address import Address
from signaling.fleet.location import NOWHERE, Place, Where

FULL = 1.0  # load without a free slot
EARTH_KM = 6371.0  # mean radius

_UNPLACED = Place()

T = TypeVar("T")
Nearness = tuple[int, float]


class Reason(enum.StrEnum):
    """Why a call went where it went; also the `reason` label of a counter."""

    NEAREST = "nearest"
    UNPLACED = "unplaced"  # the client's place, or that of all clusters, is unknown
    NEARER_FULL = "nearer_full"  # a nearer cluster has no free transceiver, or no ingress
    NEARER_INGRESS_DOWN = "nearer_ingress_down"
    ALL_INGRESSES_DOWN = "all_ingresses_down"  # taken all the same


@dataclass(frozen=True, slots=True)
class Transceiver:
    """What is known about one transceiver process."""

    endpoint: Address
    cluster: int
    ready: bool
    load: float = 0.0  # calls / capacity
    reason: str = ""  # why it is not ready

    @property
    def free(self) -> bool:
        return self.ready and self.load < FULL


@dataclass(frozen=True, slots=True)
class Ingress:
    """A relay site: the VIPs that clients send to, and the URLs of its relays' admin HTTP, if any.

    `clusters`: ids of those it has a route to; empty = all. `health`: URLs, of which any says 200
    while it takes clients; none = always healthy."""

    name: str
    vips: tuple[Address, ...]
    admin: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    clusters: frozenset[int] = frozenset()
    place: Place = _UNPLACED

    def reaches(self, cluster: int) -> bool:
        return not self.clusters or cluster in self.clusters


@dataclass(frozen=True, slots=True)
class Fleet:
    """`down`: names of the ingresses that are not healthy. `places`: of clusters, by id."""

    transceivers: tuple[Transceiver, ...]
    ingresses: tuple[Ingress, ...]
    down: Collection[str] = ()
    places: Mapping[int, Place] = field(default_factory=dict)

    def place_of(self, cluster: int) -> Place:
        return self.places.get(cluster, _UNPLACED)


@dataclass(frozen=True, slots=True)
class Placement:
    """The answer: an endpoint for the call and an ingress for its client."""

    transceiver: Transceiver
    ingress: Ingress
    reason: Reason = Reason.UNPLACED
    source: str = NOWHERE.source

    @property
    def text(self) -> str:
        """For the client; says nothing about where the client is."""
        where = f"cluster={self.transceiver.cluster} ingress={self.ingress.name}"
        return f"location={self.source} {where} reason={self.reason}"


def place(
    fleet: Fleet, dice: random.Random, tried: Collection[Address] = (), where: Where = NOWHERE
) -> Placement | None:
    """Choose for one call, leaving out endpoints that were `tried`. None: nobody can take it."""
    free = candidates(fleet, tried, where)
    if not free:
        return None
    return join(fleet, draw(free, dice), dice, where)


def candidates(
    fleet: Fleet, tried: Collection[Address] = (), where: Where = NOWHERE
) -> list[Transceiver]:
    """The free transceivers of the nearest cluster, or of all that are equally near."""
    ingresses = _usable(fleet)
    free = [t for t in fleet.transceivers if t.free and t.endpoint not in tried]
    served = (
        cluster
        for cluster in {transceiver.cluster for transceiver in free}
        if any(ingress.reaches(cluster) for ingress in ingresses)
    )
    near = _nearest(served, lambda cluster: nearness(where, fleet.place_of(cluster)))
    return [transceiver for transceiver in free if transceiver.cluster in near]


def join(
    fleet: Fleet, transceiver: Transceiver, dice: random.Random, where: Where = NOWHERE
) -> Placement:
    """A transceiver out of `candidates`, and the ingress that leads to it."""
    routed = [i for i in _usable(fleet) if i.reaches(transceiver.cluster)]
    near = _nearest(routed, lambda ingress: nearness(where, ingress.place))
    ingress = near[0] if len(near) == 1 else dice.choice(near)
    return Placement(
        transceiver, ingress, _reason(fleet, where, transceiver, ingress), where.source
    )


def draw(transceivers: Sequence[Transceiver], dice: random.Random) -> Transceiver:
    """The less loaded of two at random; with one, that one."""
    return less_loaded(pair(transceivers, dice))


def pair(transceivers: Sequence[Transceiver], dice: random.Random) -> list[Transceiver]:
    """Two at random; with one, that one."""
    count = len(transceivers)
    if count < 2:
        return list(transceivers)
    first, other = dice.randrange(count), dice.randrange(count - 1)
    return [transceivers[first], transceivers[other + (other >= first)]]


def less_loaded(transceivers: Iterable[Transceiver]) -> Transceiver:
    return min(transceivers, key=lambda transceiver: transceiver.load)


def nearness(where: Place, there: Place) -> Nearness:
    """Sorts places by how near they are to a client: same region, then kilometres, then unknown."""
    same = where.region is not None and where.region == there.region
    apart = distance_km(where, there)
    if apart is None:
        return (0, math.inf) if same else (2, 0.0)
    return (0 if same else 1, apart)


def distance_km(one: Place, other: Place) -> float | None:
    """Along the great circle (haversine formula); None unless both have degrees."""
    if one.latitude is None or one.longitude is None:
        return None
    if other.latitude is None or other.longitude is None:
        return None
    north, other_north = math.radians(one.latitude), math.radians(other.latitude)
    east = math.radians(other.longitude - one.longitude)
    half = (
        math.sin((other_north - north) / 2) ** 2
        + math.cos(north) * math.cos(other_north) * math.sin(east / 2) ** 2
    )
    return 2 * EARTH_KM * math.asin(math.sqrt(min(1.0, half)))


def _usable(fleet: Fleet) -> tuple[Ingress, ...]:
    healthy = tuple(ingress for ingress in fleet.ingresses if ingress.name not in fleet.down)
    return healthy or fleet.ingresses


def _nearest(things: Iterable[T], near: Callable[[T], Nearness]) -> list[T]:
    things = list(things)
    if len(things) < 2:
        return things
    ranked = [(near(thing), thing) for thing in things]
    best = min((rank for rank, _ in ranked), default=None)
    return [thing for rank, thing in ranked if rank == best]


def _reason(fleet: Fleet, where: Where, transceiver: Transceiver, ingress: Ingress) -> Reason:
    """What a person who wonders should look at first."""
    taken = nearness(where, ingress.place)
    routed = [i for i in fleet.ingresses if i.reaches(transceiver.cluster)]
    if all(each.name in fleet.down for each in fleet.ingresses):
        return Reason.ALL_INGRESSES_DOWN
    if any(nearness(where, each.place) < taken for each in routed):
        return Reason.NEARER_INGRESS_DOWN
    chosen = nearness(where, fleet.place_of(transceiver.cluster))
    known = {t.cluster for t in fleet.transceivers} | fleet.places.keys()
    if any(nearness(where, fleet.place_of(each)) < chosen for each in known):
        return Reason.NEARER_FULL
    return Reason.UNPLACED if chosen[0] == 2 else Reason.NEAREST
