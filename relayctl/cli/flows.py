"""`relayctl flows`: list, get, watch, delete."""

import heapq
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import click

from relayctl.cli import render
from relayctl.cli.session import Failed, Session, shared_options, with_session
from relayctl.inspect.flow_changes import changes
from relayctl.inspect.reader import Reader
from relayctl.inspect.records import Record
from relayctl.wire import address
from relayctl.wire.address import Address

COLUMNS = (
    render.Column("CLIENT", lambda flow: flow["client"]),
    render.Column("VIP", lambda flow: flow["vip"]),
    render.Column("ENDPOINT", lambda flow: flow["endpoint"]),
    render.Column("STATE", lambda flow: flow["state"]),
    render.Column("PATH", lambda flow: flow["path"]),
    render.Column("REASON", lambda flow: flow["reason"]),
    render.Column("PKTS UP", lambda flow: render.count(flow["packets"]["up"]), "right"),
    render.Column("PKTS DOWN", lambda flow: render.count(flow["packets"]["down"]), "right"),
    render.Column("UP", lambda flow: render.size(flow["bytes"]["up"]), "right"),
    render.Column("DOWN", lambda flow: render.size(flow["bytes"]["down"]), "right"),
    render.Column("AGE", lambda flow: f"{flow['age_s']:.0f} s", "right"),
    render.Column("IDLE", lambda flow: f"{flow['idle_s']:.0f} s", "right"),
    render.Column("CONTENDED", lambda flow: _contended(flow), "right"),
)

SORT_KEYS = {
    "client": lambda flow: flow["client"],
    "endpoint": lambda flow: flow["endpoint"],
    "bytes": lambda flow: -(flow["bytes"]["up"] + flow["bytes"]["down"]),
    "age": lambda flow: -flow["age_s"],
    "idle": lambda flow: -flow["idle_s"],
}


class AddressType(click.ParamType[Address]):
    """`<ip>:<port>` on the command line."""

    name = "ip:port"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Address:
        try:
            return address.parse(str(value))
        except address.AddressError as error:
            self.fail(str(error), param, ctx)


ADDRESS = AddressType()


@click.group()
def flows() -> None:
    """The flow table: who talks to which transceiver."""


@flows.command("list")
@click.option("--endpoint", type=ADDRESS, help="Only flows to this endpoint.")
@click.option("--state", type=click.Choice(["new", "confirmed"]), help="Only flows in this state.")
@click.option("--sort", type=click.Choice(list(SORT_KEYS)), help="Look at all, show the first.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=1000, show_default=True, help="0: all of them."
)
@shared_options
@with_session
def list_(
    session: Session, endpoint: Address | None, state: str | None, sort: str | None, limit: int
) -> None:
    """Show flows, and say on stderr how many more there are."""

    def wanted(flow: Record) -> bool:
        return (endpoint is None or flow["endpoint"] == address.render(endpoint)) and (
            state is None or flow["state"] == state
        )

    with session.reader() as reader:
        found = filter(wanted, reader.flows())
        if not limit and not sort and session.json:
            render.json_stream(found)
            return
        if sort:
            shown, more = _first(found, limit, SORT_KEYS[sort])
        else:
            shown = sorted(itertools.islice(found, limit or None), key=SORT_KEYS["client"])
            more = _beyond(reader, found, len(shown), filtered=bool(endpoint or state))
    _show(session, shown)
    if more:
        click.echo(f"{more} more; --limit 0 shows all", err=True)


def _first(
    found: Iterator[Record], limit: int, key: Callable[[Record], Any]
) -> tuple[list[Record], int]:
    """At most `limit` flows (0: all), the first by `key`; and how many there are beyond."""
    if not limit:
        return sorted(found, key=key), 0
    counted = itertools.count()
    shown = heapq.nsmallest(limit, (flow for flow, _ in zip(found, counted, strict=False)), key)
    return shown, next(counted) - len(shown)


def _beyond(reader: Reader, rest: Iterator[Record], shown: int, *, filtered: bool) -> int:
    """How many flows come behind those shown. The relay knows the sum of all, unfiltered."""
    if next(rest, None) is None:
        return 0
    if filtered:
        return 1 + sum(1 for _ in rest)
    counts = reader.status()["flows"]
    return max(1, int(counts["new"] + counts["confirmed"]) - shown)


@flows.command()
@click.argument("client", type=ADDRESS)
@click.option("--vip", metavar="IP:PORT|ID", help="Only the flow to this VIP.")
@shared_options
@with_session
def get(session: Session, client: Address, vip: str | None) -> None:
    """Show the flow of CLIENT, or one for each VIP it talks to."""
    with session.reader() as reader:
        found = reader.flow(client, vip)
    if not found:
        raise Failed(f"no flow of {address.render(client)}{f' to {vip}' if vip else ''}")
    _show(session, found)


@flows.command()
@click.option("--interval", type=click.FloatRange(min=0.1), default=1.0, show_default=True)
@click.option("--count", type=click.IntRange(min=1), help="Stop after so many looks.")
@shared_options
@with_session
def watch(session: Session, interval: float, count: int | None) -> None:
    """Print the flows that are known, and what changes: that come, get confirmed, move, or go.

    One line each; with -o json, one JSON object each.
    """
    before: dict[tuple[str, int], Record] | None = None
    looks = 0
    while True:
        after = {(flow["client"], flow["vip_id"]): flow for flow in _read(session)}
        for change, flow in changes(before, after):
            if session.json:
                render.json_line({"change": change, "flow": flow})
            else:
                click.echo(_change_line(change, flow))
        before, looks = after, looks + 1
        if looks == count:
            return
        time.sleep(interval)


@flows.command()
@click.argument("client", type=ADDRESS)
@click.option("--vip", metavar="IP:PORT|ID", help="Only the flow to this VIP.")
@shared_options
@with_session
def delete(session: Session, client: Address, vip: str | None) -> None:
    """End the flow of CLIENT. Its call comes back with its next STUN check."""
    with session.reader() as reader:
        gone = reader.delete(client, vip)
    if not gone:
        raise Failed(f"no flow of {address.render(client)}{f' to {vip}' if vip else ''}")
    click.echo(f"deleted {address.render(client)}", err=True)


def _read(session: Session) -> list[Record]:
    with session.reader() as reader:
        return list(reader.flows())


def _show(session: Session, found: list[Record]) -> None:
    if session.json:
        render.json_document(found)
    else:
        render.table(COLUMNS, found)


def _contended(flow: Record) -> str | None:
    """Since when another endpoint claims the client."""
    age = flow["contended_s"]
    return None if age is None else f"{age:.0f} s{', open' if flow['takeover'] else ''}"


def _change_line(change: str, flow: Record) -> str:
    when = time.strftime("%H:%M:%S")
    line = f"{when} {change:<9} {flow['client']} > {flow['endpoint']} {flow['path']}"
    return render.escape(line)
