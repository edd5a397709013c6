import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signaling.fleet.location import NOWHERE, Place, Where
from signaling.fleet.steering import (
    EARTH_KM,
    Fleet,
    Ingress,
    Placement,
    Reason,
    Transceiver,
    distance_km,
    draw,
    nearness,
    place,
)

BERLIN = Place(52.52, 13.40, "eu")
DUBLIN = Place(53.35, -6.26, "eu")
VIRGINIA = Place(38.9, -77.4, "us")
SINGAPORE = Place(1.35, 103.8, "asia")
HERE = Where(48.85, 2.35, source="geoip")  # Paris

SITE = Ingress("relay-a", (("203.0.113.10", 3478),))
SPARE = Ingress("relay-b", (("203.0.113.11", 3478),))
PLACES = {7: BERLIN, 8: VIRGINIA, 9: SINGAPORE}


def transceiver(
    port: int, *, cluster: int = 7, ready: bool = True, load: float = 0.0
) -> Transceiver:
    return Transceiver(("10.2.0.2", port), cluster, ready, load)


def ingress(name: str, where: Place, *clusters: int) -> Ingress:
    return Ingress(name, (("203.0.113.10", 3478),), clusters=frozenset(clusters), place=where)


WORLD = (
    *(transceiver(5000 + n, cluster=7) for n in range(2)),
    *(transceiver(6000 + n, cluster=8) for n in range(2)),
    *(transceiver(7000 + n, cluster=9) for n in range(2)),
)
SITES = (ingress("dublin", DUBLIN), ingress("virginia", VIRGINIA), ingress("asia", SINGAPORE, 9))


def steer(fleet: Fleet, where: Where = HERE, **options: object) -> Placement:
    placement = place(fleet, random.Random(0), where=where, **options)  # type: ignore[arg-type]
    assert placement is not None
    return placement


def without(*clusters: int) -> tuple[Transceiver, ...]:
    return tuple(
        transceiver(t.endpoint[1], cluster=t.cluster, ready=t.cluster not in clusters)
        for t in WORLD
    )


def test_takes_the_only_ready_one() -> None:
    fleet = Fleet((transceiver(5000, ready=False), transceiver(5001)), (SITE,))
    placement = steer(fleet, NOWHERE)
    assert placement.transceiver.endpoint == ("10.2.0.2", 5001)
    assert placement.ingress is SITE
    assert placement.text == "location=default cluster=7 ingress=relay-a reason=unplaced"


def test_nobody_is_ready_or_there_is_no_way_in() -> None:
    dice = random.Random(0)
    assert place(Fleet((transceiver(5000, ready=False),), (SITE,)), dice) is None
    assert place(Fleet((transceiver(5000, load=1.0),), (SITE,)), dice) is None
    assert place(Fleet((transceiver(5000),), ()), dice) is None
    assert place(Fleet((transceiver(5000),), (ingress("x", BERLIN, 8),)), dice) is None


def test_an_endpoint_is_not_tried_twice() -> None:
    fleet = Fleet((transceiver(5000), transceiver(5001)), (SITE,))
    dice = random.Random(0)
    for _ in range(20):
        placement = place(fleet, dice, {("10.2.0.2", 5000)})
        assert placement is not None
        assert placement.transceiver.endpoint[1] == 5001
    assert place(fleet, dice, {("10.2.0.2", 5000), ("10.2.0.2", 5001)}) is None


def test_two_at_random_spare_the_fullest_and_use_the_rest() -> None:
    transceivers = [transceiver(5000 + n, load=n / 10) for n in range(4)]
    dice = random.Random(0)
    drawn = [draw(transceivers, dice).endpoint[1] for _ in range(600)]
    counts = [drawn.count(5000 + n) for n in range(4)]
    assert counts[3] == 0  # it loses against whichever it is drawn with
    assert counts[0] > counts[1] > counts[2] > 50  # 3/6, 2/6, 1/6


@pytest.mark.parametrize(
    ("where", "cluster", "site"),
    [
        (Where(48.85, 2.35), 7, "dublin"),
        (Where(40.7, -74.0), 8, "virginia"),
        (Where(-33.9, 151.2), 9, "asia"),
        (Where(38.0, -175.0), 8, "virginia"),  # across the date line
        (Where(region="asia"), 9, "asia"),
        (Where(48.85, 2.35, "us"), 8, "virginia"),  # what a region says goes first
        (Where(48.85, 2.35, "mars"), 7, "dublin"),
    ],
)
def test_the_nearest_cluster_and_the_nearest_ingress(where: Where, cluster: int, site: str) -> None:
    placement = steer(Fleet(WORLD, SITES, places=PLACES), where)
    assert (placement.transceiver.cluster, placement.ingress.name) == (cluster, site)
    assert placement.reason is Reason.NEAREST


@pytest.mark.parametrize(
    ("out", "cluster", "site"), [((7,), 8, "dublin"), ((7, 8), 9, "dublin"), ((8, 9), 7, "dublin")]
)
def test_a_full_cluster_is_passed_over(out: tuple[int, ...], cluster: int, site: str) -> None:
    """The client still comes in where it is."""
    placement = steer(Fleet(without(*out), SITES, places=PLACES))
    assert (placement.transceiver.cluster, placement.ingress.name) == (cluster, site)
    assert placement.reason is (Reason.NEAREST if cluster == 7 else Reason.NEARER_FULL)


def test_a_cluster_that_no_healthy_ingress_reaches_is_passed_over() -> None:
    sites = (ingress("a", BERLIN, 7), ingress("b", VIRGINIA, 8))
    placement = steer(Fleet(WORLD, sites, down={"a"}, places=PLACES))
    assert (placement.transceiver.cluster, placement.ingress.name) == (8, "b")
    assert placement.reason is Reason.NEARER_FULL


def test_an_ingress_that_is_down_is_passed_over() -> None:
    placement = steer(Fleet(WORLD, SITES, down={"dublin"}, places=PLACES))
    assert (placement.transceiver.cluster, placement.ingress.name) == (7, "virginia")
    assert placement.reason is Reason.NEARER_INGRESS_DOWN


def test_all_ingresses_down_means_that_we_cannot_see_them() -> None:
    down = {site.name for site in SITES}
    placement = steer(Fleet(WORLD, SITES, down=down, places=PLACES))
    assert placement.ingress.name == "dublin"
    assert placement.reason is Reason.ALL_INGRESSES_DOWN


def test_an_ingress_without_a_route_to_the_cluster_is_none() -> None:
    sites = (ingress("near", BERLIN, 8), ingress("far", VIRGINIA, 7))
    fleet = Fleet(without(8, 9), sites, places=PLACES)
    assert steer(fleet).ingress.name == "far"


def test_without_a_place_load_alone_decides() -> None:
    fleet = Fleet((*WORLD, transceiver(8000, cluster=10)), (SITE,), places=PLACES)
    clusters = {
        placement.transceiver.cluster
        for seed in range(60)
        if (placement := place(fleet, random.Random(seed), where=NOWHERE))
    }
    assert clusters == {7, 8, 9, 10}
    assert steer(fleet, NOWHERE).reason is Reason.UNPLACED


def test_equally_near_ingresses_share_the_calls() -> None:
    fleet = Fleet(WORLD, (SITE, SPARE), places=PLACES)
    dice = random.Random(0)
    names = [placed.ingress.name for _ in range(40) if (placed := place(fleet, dice))]
    assert 5 < names.count("relay-a") < 35


def test_known_places_go_before_unknown_ones() -> None:
    assert nearness(HERE, SINGAPORE) < nearness(HERE, Place())
    assert nearness(Where(region="eu"), Place(region="eu")) < nearness(HERE, BERLIN)
    assert nearness(NOWHERE, BERLIN) == nearness(NOWHERE, Place())


def test_the_retry_leaves_the_cluster_only_when_it_has_nobody_else() -> None:
    fleet = Fleet(WORLD, SITES, places=PLACES)
    assert steer(fleet, tried={("10.2.0.2", 5000)}).transceiver.endpoint[1] == 5001
    both = {("10.2.0.2", 5000), ("10.2.0.2", 5001)}
    assert steer(fleet, tried=both).transceiver.cluster == 8


def test_distances() -> None:
    assert distance_km(BERLIN, DUBLIN) == pytest.approx(1315, rel=0.01)
    assert distance_km(BERLIN, SINGAPORE) == pytest.approx(9930, rel=0.01)
    assert distance_km(Place(0, 179.5), Place(0, -179.5)) == pytest.approx(111.2, rel=0.01)
    assert distance_km(Place(90, 0), Place(-90, 77)) == pytest.approx(math.pi * EARTH_KM)
    assert distance_km(BERLIN, Place(region="eu")) is None


DEGREES = st.builds(Place, st.floats(-90, 90), st.floats(-180, 180))


@given(DEGREES, DEGREES)
def test_distance_is_a_distance(one: Place, other: Place) -> None:
    apart = distance_km(one, other)
    assert apart is not None
    assert 0 <= apart <= math.pi * EARTH_KM + 1e-6
    assert apart == pytest.approx(distance_km(other, one), abs=1e-6)
    assert distance_km(one, one) == 0
