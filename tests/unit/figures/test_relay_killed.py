from typing import Any

import pytest

from tests.figures.relay_killed import Flows, kept


def flow(count: int, **changed: Any) -> dict[str, Any]:
    return {
        "endpoint": "10.2.0.2:5000",
        "vip": "203.0.113.10:3478",
        "state": "confirmed",
        "ssrc": 1,
        "packets": {"up": count, "down": count},
        "age_s": count / 50,
    } | changed


def looks(*flows: dict[str, Any]) -> list[Flows]:
    return [{"10.1.0.2:1": each} for each in flows]


def test_kept() -> None:
    assert kept(looks(flow(50), flow(100), flow(150)))


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(flow(50), id="did not count"),
        pytest.param(flow(100, packets={"up": 100, "down": 50}), id="counted one way"),
        pytest.param(flow(100, age_s=0.5), id="made again"),
        pytest.param(flow(100, endpoint="10.2.0.3:5000"), id="another endpoint"),
        pytest.param(flow(100, ssrc=2), id="another source"),
    ],
)
def test_not_kept(after: dict[str, Any]) -> None:
    assert not kept(looks(flow(50), after, flow(200, age_s=9.0)))


def test_a_flow_less_or_more() -> None:
    one, two = {"a": flow(50)}, {"a": flow(100), "b": flow(100)}
    assert not kept([one, two])
    assert not kept([two, {"a": flow(150)}])
