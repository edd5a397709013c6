import random

from signaling.steering import Fleet, Ingress, Transceiver, draw, place

SITE = Ingress("relay-a", (("203.0.113.10", 3478),))
SPARE = Ingress("relay-b", (("203.0.113.11", 3478),))


def transceiver(port: int, *, ready: bool = True, load: float = 0.0) -> Transceiver:
    return Transceiver(("10.2.0.2", port), 7, ready, load)


def test_takes_the_only_ready_one() -> None:
    fleet = Fleet((transceiver(5000, ready=False), transceiver(5001)), (SITE, SPARE))
    placement = place(fleet, random.Random(0))
    assert placement is not None
    assert placement.transceiver.endpoint == ("10.2.0.2", 5001)
    assert placement.ingress is SITE


def test_nobody_is_ready_or_there_is_no_way_in() -> None:
    dice = random.Random(0)
    assert place(Fleet((transceiver(5000, ready=False),), (SITE,)), dice) is None
    assert place(Fleet((transceiver(5000),), ()), dice) is None


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
