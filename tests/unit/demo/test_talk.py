"""A packet that did not arrive is a loss, whether sequence numbers show it or not."""

from typing import Any

import numpy as np
import pytest

from tests.demo.talk import Talk


def talk(**changes: Any) -> Talk:
    fields: dict[str, Any] = {
        "client": "aiortc",
        "version": "",
        "setup_ms": {},
        "sent": 500,
        "received": 500,
        "lost": 0,
        "far": {"packets": {"up": 500, "down": 500}, "lost": 0},
        "remote": "203.0.113.10:3478",
        "heard": np.zeros(48_000, np.float32),
        "echo_delay_ms": 90.0,
    }
    return Talk(**fields | changes)


def far(up: int, down: int, lost: int) -> dict[str, Any]:
    return {"packets": {"up": up, "down": down}, "lost": lost}


@pytest.mark.parametrize(
    ("changes", "up", "down"),
    [
        ({}, 0, 0),
        ({"far": far(497, 497, lost=3), "received": 497}, 3, 0),  # gaps on the way up
        ({"far": far(498, 498, lost=0), "received": 498}, 2, 0),  # the last two: no gap
        ({"received": 496, "lost": 4}, 0, 4),
        ({"received": 495, "lost": 0}, 0, 5),  # the last five
        ({"far": far(500, 500, lost=2)}, 2, 0),  # gaps that something else filled the count of
        ({"lost": 2}, 0, 2),
    ],
)
def test_losses_each_way(changes: dict[str, Any], up: int, down: int) -> None:
    assert talk(**changes).losses() == {"up": up, "down": down}
