"""Tables and JSON on the terminal. Text from the network is made harmless first."""

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relayctl.inspect.records import Record

PIPE_WIDTH = 10_000  # columns: in a pipe nothing is folded or cut


class Column(NamedTuple):
    title: str
    value: Callable[[Record], Any]
    justify: Literal["left", "right"] = "left"


def escape(value: object) -> str:
    """Text without characters that steer a terminal: each becomes its Python escape."""
    return "".join(
        character
        if unicodedata.category(character)[0] != "C"
        else character.encode("unicode_escape").decode()
        for character in str(value)
    )


def count(value: int) -> str:
    return f"{value:,}"


def size(value: int) -> str:
    """Bytes with a decimal prefix: 999 B, 12.3 kB."""
    if value < 1000:
        return f"{value} B"
    for power, prefix in enumerate("kMG", 1):
        if value < 999.95 * 1000**power:
            return f"{value / 1000**power:.1f} {prefix}B"
    return f"{value / 1e12:.1f} TB"


def json_document(value: object) -> None:
    """ASCII only, so control characters arrive escaped. A list has one entry a line."""
    if isinstance(value, list):
        json_stream(value)
    else:
        click.echo(json.dumps(value, indent=2))


def json_stream(entries: Iterable[object]) -> None:
    """A list of any length, one entry a line, written as it comes."""
    before = "[\n"
    for entry in entries:
        sys.stdout.write(f"{before}  {json.dumps(entry)}")
        before = ",\n"
    click.echo("[]" if before == "[\n" else "\n]")


def json_line(value: object) -> None:
    click.echo(json.dumps(value))
    sys.stdout.flush()


def table(columns: Sequence[Column], records: Iterable[Record]) -> None:
    console().print(draw(columns, records))


def draw(columns: Sequence[Column], records: Iterable[Record]) -> Table:
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        drawn.add_column(column.title, justify=column.justify, no_wrap=True)
    for record in records:
        drawn.add_row(*(Text(_cell(column.value(record))) for column in columns))
    return drawn


def pairs(rows: Iterable[tuple[str, object]]) -> None:
    """Name and value, one line each."""
    shown = [(name, _cell(value)) for name, value in rows]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{click.style(name.ljust(width), bold=True)}  {value}")


def _cell(value: object) -> str:
    return "-" if value is None or value == "" else escape(value)


def console() -> Console:
    """Made per call: tests and pipes swap `sys.stdout`."""
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else PIPE_WIDTH)
