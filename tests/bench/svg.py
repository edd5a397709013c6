"""Plots as SVG text: lines and bars on logarithmic or plain axes. Pure, and no more than needed.

One font, a palette that the colour-blind can tell apart, and a white ground, so that a plot reads
the same in a light and a dark page.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 24, 56, 60
_PALETTE = ("#0b6e99", "#d1495b", "#6a994e", "#edae49", "#5f4bb6", "#8d99ae")  # of lines
_INK, _FAINT, _GRID = "#1f2933", "#52606d", "#e4e7eb"
_FONT = 'font-family="Helvetica, Arial, sans-serif"'
_HEADING = 'font-size="15.5" font-weight="600"'

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high`; `ticks` are (value, text)."""

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def share(self, value: float) -> float:
        """Where `value` is, 0 at `low`, 1 at `high`; values outside sit on the edge."""
        if self.log:
            found = math.log(max(value, 1e-12) / self.low) / math.log(self.high / self.low)
        else:
            found = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, found))


def log_axis(label: str, low: float, high: float, text: Callable[[float], str]) -> Axis:
    """Whole decades around `low` and `high`, a tick at each."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    ticks = [(10.0**power, text(10.0**power)) for power in range(first, last + 1)]
    return Axis(label, 10.0**first, 10.0**last, ticks, log=True)


def plain_axis(label: str, high: float, text: Callable[[float], str]) -> Axis:
    """From 0 to something round above `high`, in four to eight steps."""
    step = 10.0 ** math.floor(math.log10(high / 4))
    step = next(step * factor for factor in (1, 2, 5, 10) if high / (step * factor) <= 8)
    count = math.ceil(high / step)
    return Axis(label, 0.0, count * step, [(n * step, text(n * step)) for n in range(count + 1)])


def lines(title: str, x: Axis, y: Axis, series: Mapping[str, Points]) -> str:
    """A line with a mark at each point for each series, and a legend above the plot."""
    body = [*_horizontal_grid(y), *_vertical_ticks(x)]
    for colour, points in zip(_PALETTE, series.values(), strict=False):
        at = [(_x(x, a), _y(y, b)) for a, b in points]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in at)
        body.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.2" '
            'stroke-linejoin="round"/>'
        )
        if len(at) <= 12:
            body += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.6" fill="{colour}"/>' for a, b in at]
    body += _legend(list(series))
    return _document(title, x.label, y.label, body)


def bars(title: str, x: Axis, rows: Sequence[tuple[str, float, str]]) -> str:
    """A horizontal bar for each row: name, value, text at its end."""
    left, gap = 210, 8
    room = HEIGHT - _TOP - _BOTTOM
    thick = room / len(rows) - gap
    body: list[str] = []
    for value, text in x.ticks:
        at = left + x.share(value) * (WIDTH - left - 96)
        body.append(_line(at, _TOP, at, HEIGHT - _BOTTOM))
        body.append(_text(at, HEIGHT - _BOTTOM + 18, text, "middle", _FAINT))
    for number, (name, value, text) in enumerate(rows):
        top = _TOP + number * (thick + gap) + gap / 2
        long = max(1.5, x.share(value) * (WIDTH - left - 96))
        colour = _PALETTE[0] if number == 0 else _PALETTE[5]
        body.append(_text(left - 10, top + thick / 2 + 4, name, "end", _INK))
        body.append(
            f'<rect x="{left}" y="{top:.1f}" width="{long:.1f}" height="{thick:.1f}" rx="2" '
            f'fill="{colour}"/>'
        )
        body.append(_text(left + long + 8, top + thick / 2 + 4, text, "start", _INK))
    return _document(title, x.label, "", body)


def _x(axis: Axis, value: float) -> float:
    return _LEFT + axis.share(value) * (WIDTH - _LEFT - _RIGHT)


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - _BOTTOM - axis.share(value) * (HEIGHT - _TOP - _BOTTOM)


def _horizontal_grid(axis: Axis) -> list[str]:
    found = []
    for value, text in axis.ticks:
        at = _y(axis, value)
        found.append(_line(_LEFT, at, WIDTH - _RIGHT, at))
        found.append(_text(_LEFT - 8, at + 4, text, "end", _FAINT))
    return found


def _vertical_ticks(axis: Axis) -> list[str]:
    bottom = HEIGHT - _BOTTOM
    found = [_line(_LEFT, bottom, WIDTH - _RIGHT, bottom, _FAINT)]
    for value, text in axis.ticks:
        at = _x(axis, value)
        found.append(_line(at, bottom, at, bottom + 5, _FAINT))
        found.append(_text(at, bottom + 19, text, "middle", _FAINT))
    return found


def _legend(names: Sequence[str]) -> list[str]:
    found, at = [], float(_LEFT)
    for colour, name in zip(_PALETTE, names, strict=False):
        found.append(f'<rect x="{at:.1f}" y="38" width="14" height="4" rx="2" fill="{colour}"/>')
        found.append(_text(at + 20, 44, name, "start", _INK))
        at += 42 + 6.6 * len(name)
    return found


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = _GRID) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        'stroke-width="1"/>'
    )


def _text(x: float, y: float, text: str, anchor: str, colour: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}>{escape(text)}</text>"


def _document(title: str, below: str, beside: str, body: Sequence[str]) -> str:
    middle_y = (_TOP + HEIGHT - _BOTTOM) / 2
    frame = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}" {_FONT} font-size="12.5">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="16" y="24" {_HEADING} fill="{_INK}">{escape(title)}</text>',
        *body,
        _text(WIDTH / 2, HEIGHT - 16, below, "middle", _INK),
        f'<text transform="translate(18 {middle_y:.1f}) rotate(-90)" text-anchor="middle" '
        f'fill="{_INK}">{escape(beside)}</text>',
        "</svg>",
    ]
    return "\n".join(frame) + "\n"
