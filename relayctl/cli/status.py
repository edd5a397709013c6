"""`relayctl status`, `stats`, `nexthops`: the relay as a whole."""

import click

from relayctl.cli import render
from relayctl.cli.session import Session, shared_options, with_session
from relayctl.inspect.records import Record

REASONS = (
    render.Column("REASON", lambda record: record["reason"]),
    render.Column("COUNTED BY", lambda record: record["counted_by"].replace("_", " ")),
    render.Column("PACKETS", lambda record: render.count(record["count"]), "right"),
)

NEXTHOPS = (
    render.Column("INDEX", lambda record: record["index"], "right"),
    render.Column("VALID", lambda record: "yes" if record["valid"] else "no"),
    render.Column("GATEWAY", lambda record: record["gateway"]),
    render.Column("INTERFACE", lambda record: record["interface"]),
    render.Column("SOURCE", lambda record: record["source"]),
    render.Column("MTU", lambda record: record["mtu"], "right"),
    render.Column("FROM", lambda record: record["source_mac"]),
    render.Column("TO", lambda record: record["destination_mac"]),
    render.Column("TAGS", lambda record: ".".join(map(str, record["tags"]))),
)


@click.command()
@shared_options
@with_session
def status(session: Session) -> None:
    """Is the relay running, on which datapath, and how full is it? Counters: `stats`."""
    with session.reader() as reader:
        found = reader.status()
    if session.json:
        render.json_document(found)
    else:
        render.pairs(_lines({name: found[name] for name in found if name != "reasons"}))


def _lines(record: Record) -> list[tuple[str, object]]:
    """Nested values get dotted names; lists stand in one line."""
    lines: list[tuple[str, object]] = []
    for name, value in record.items():
        if isinstance(value, dict):
            lines += [(f"{name}.{inner}", shown) for inner, shown in _lines(value)]
        elif isinstance(value, list):
            lines.append((name, ", ".join(map(_inline, value))))
        else:
            lines.append((name, "yes" if value is True else "no" if value is False else value))
    return lines


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(dict.fromkeys(map(str, value.values())))
    return str(value)


@click.command()
@click.option("--all", "everything", is_flag=True, help="Zeros too.")
@shared_options
@with_session
def stats(session: Session, everything: bool) -> None:
    """Packets by reason: forwarded, handed to user space, dropped."""
    with session.reader() as reader:
        found = reader.reasons()
    if session.json:
        render.json_document(found)
    else:
        render.table(REASONS, [each for each in found if each["count"] or everything])


@click.command()
@shared_options
@with_session
def nexthops(session: Session) -> None:
    """Where redirected packets go: interfaces and MAC addresses."""
    with session.reader() as reader:
        found = reader.nexthops()
    if session.json:
        render.json_document(found)
    else:
        render.table(NEXTHOPS, found)
