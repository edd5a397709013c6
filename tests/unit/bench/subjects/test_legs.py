import pytest

from tests.bench import wire
from tests.bench.subjects import legs
from tests.bench.subjects.base import Leg


@pytest.mark.parametrize(
    ("leg", "grows"),
    [
        pytest.param(legs.forward(4, 4), 38, id="v4_v4"),
        pytest.param(legs.forward(4, 6), 58, id="v4_v6"),
        pytest.param(legs.forward(6, 4), 18, id="v6_v4"),
        pytest.param(legs.forward(spp=False), 0, id="transparent"),
        pytest.param(legs.back(4, 4), -38, id="return"),
        pytest.param(legs.back(6, 4), -18, id="return_v6_v4"),
    ],
)
def test_the_stamp_moves_by_what_the_frame_grows(leg: Leg, grows: int) -> None:
    assert leg.grows == grows
    assert leg.watch.stamp_at == leg.frame.stamp_at + grows


def test_forward_is_known_by_the_endpoints_port_and_return_by_the_vips() -> None:
    assert legs.forward().watch.port == wire.ENDPOINT_PORT
    assert legs.back().watch.port == wire.VIP[4][1]


@pytest.mark.parametrize("leg", [legs.forward(), legs.back(), legs.back_plain(), legs.back(6, 6)])
def test_an_untouched_frame_is_watched_by_a_port_that_it_has(leg: Leg) -> None:
    watch = legs.untouched(leg).watch
    at = watch.port_at
    assert watch.port == int.from_bytes(leg.frame.data[at : at + 2], "big") != 0
    assert leg.frame.data[watch.protocol_at] == 17
    assert watch.stamp_at == leg.frame.stamp_at
