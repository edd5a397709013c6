import xml.etree.ElementTree as ElementTree

import pytest

from tests.bench import svg
from tests.bench.svg import Axis


def texts(plot: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(plot).iter() if element.text]


def test_a_log_axis_covers_its_values_by_whole_decades() -> None:
    axis = svg.log_axis("ns", 30, 4_000, str)
    assert (axis.low, axis.high) == (10, 10_000)
    assert axis.share(10) == 0
    assert axis.share(100) == pytest.approx(1 / 3)
    assert axis.share(10_000) == 1


@pytest.mark.parametrize("high", [0.37, 1.0, 3.9, 7.1, 88.0, 1234.0])
def test_a_plain_axis_has_a_handful_of_round_ticks(high: float) -> None:
    axis = svg.plain_axis("Mpps", high, str)
    assert axis.low == 0 < high <= axis.high
    assert 4 <= len(axis.ticks) <= 10


def test_values_outside_sit_on_the_edge() -> None:
    assert Axis("", 1, 10, [], log=True).share(100) == 1
    assert Axis("", 1, 10, [], log=True).share(0) == 0


def test_lines_have_title_labels_ticks_and_legend_and_escape_them() -> None:
    axis = Axis("x & y", 0, 1, [(0, "none"), (1, "<all>")])
    plot = svg.lines("T < U", axis, axis, {"one": [(0, 0), (1, 1)], "two": [(0, 1)]})
    found = texts(plot)
    for text in ("T < U", "x & y", "none", "<all>", "one", "two"):
        assert text in found


def test_higher_values_are_higher_up() -> None:
    axis = Axis("", 0, 1, [])
    plot = ElementTree.fromstring(svg.lines("", axis, axis, {"": [(0, 0), (1, 1)]}))
    first, last = plot.findall(".//{http://www.w3.org/2000/svg}circle")
    assert float(last.get("cy", "")) < float(first.get("cy", ""))
    assert float(last.get("cx", "")) > float(first.get("cx", ""))


def test_bars_are_as_long_as_their_values() -> None:
    axis = svg.plain_axis("", 10, str)
    plot = ElementTree.fromstring(svg.bars("", axis, [("a", 10.0, "ten"), ("b", 5.0, "five")]))
    _, long, short = plot.findall("{http://www.w3.org/2000/svg}rect")
    assert float(long.get("width", "")) == pytest.approx(
        2 * float(short.get("width", "")), rel=0.01
    )
