"""`relayctl stats`, `top`: packets by reason, and how many a second."""

import itertools
import time
from collections.abc import Iterable, Iterator

import click
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from relayctl.cli import render
from relayctl.cli.session import Session, shared_options, with_session
from relayctl.inspect.rates import per_s, with_rates
from relayctl.inspect.records import Record

TOTALS = (
    render.Column("REASON", lambda record: record["reason"]),
    render.Column("COUNTED BY", lambda record: record["counted_by"].replace("_", " ")),
    render.Column("PACKETS", lambda record: render.count(record["count"]), "right"),
)
RATES = (*TOTALS, render.Column("PER SECOND", lambda record: f"{record['per_s']:,.0f}", "right"))

INTERVAL = click.option(
    "--interval", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="Seconds."
)


@click.command()
@click.option("--all", "everything", is_flag=True, help="Zeros too.")
@click.option("--watch", is_flag=True, help="Go on, and tell how many a second.")
@INTERVAL
@click.option("--count", type=click.IntRange(min=1), help="Stop after so many looks.")
@shared_options
@with_session
def stats(
    session: Session, everything: bool, watch: bool, interval: float, count: int | None
) -> None:
    """Packets by reason: forwarded, handed to user space, dropped.

    Those of the program come first, then those of the packet process. With --watch -o json, one
    list a line.
    """
    if not watch:
        found = _reasons(session)
        if session.json:
            render.json_document(found)
        else:
            render.table(TOTALS, _counted(found, everything))
        return
    for found in _looks(session, interval, count):
        if session.json:
            render.json_line(found)
        else:
            render.table(RATES, _counted(found, everything))


def _counted(records: Iterable[Record], everything: bool) -> list[Record]:
    return [record for record in records if record["count"] or everything]


@click.command()
@INTERVAL
@click.option("--once", is_flag=True, help="One look, then end.")
@shared_options
@with_session
def top(session: Session, interval: float, once: bool) -> None:
    """What the relay does now: packets a second by leg and reason. Ends on Ctrl-C."""
    looks = _looks(session, interval, 1 if once else None)
    if once:
        for found in looks:
            render.console().print(_screen(found, _status(session)))
        return
    try:
        with Live(console=render.console(), auto_refresh=False, screen=True) as live:
            for found in looks:
                live.update(_screen(found, _status(session)), refresh=True)
    except KeyboardInterrupt:
        return


def _looks(session: Session, interval: float, count: int | None) -> Iterator[list[Record]]:
    """Reasons with their rates, every `interval` seconds."""
    before, then = _reasons(session), time.monotonic()
    for _ in itertools.repeat(None) if count is None else range(count):
        time.sleep(interval)
        after, now = _reasons(session), time.monotonic()
        yield with_rates(before, after, now - then)
        before, then = after, now


def _reasons(session: Session) -> list[Record]:
    with session.reader() as reader:
        return reader.reasons()


def _status(session: Session) -> Record:
    with session.reader() as reader:
        return reader.status()


def _screen(found: list[Record], status: Record) -> Group:
    flows = status["flows"]
    legs = (
        ("to endpoints", per_s(found, "forward", "slow_forward")),
        ("to clients", per_s(found, "return", "slow_return")),
        ("to user space", per_s(found, "punt_")),
        ("dropped", per_s(found, "drop_")),
    )
    head = Table.grid(padding=(0, 3))
    head.add_row(f"{status['instance']}", status["datapath"], *(name for name, _ in legs))
    head.add_row(
        f"{render.count(flows['new'] + flows['confirmed'])} of {render.count(flows['max'])} flows",
        "running" if status["running"] else "daemon down",
        *(f"{rate:,.0f}/s" for _, rate in legs),
    )
    busy = sorted(_counted(found, False), key=lambda record: -record["per_s"])
    return Group(head, Text(), render.draw(RATES, busy))
