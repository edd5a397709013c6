"""`relayctl status`, `nexthops`, `clusters`: the relay as a whole."""

import click

from relayctl.cli import render
from relayctl.cli.session import Failed, Session, shared_options, with_session
from relayctl.inspect.records import Record

NEXTHOPS = (
    render.Column("INDEX", lambda record: record["index"], "right"),
    render.Column("VALID", lambda record: "yes" if record["valid"] else "no"),
    render.Column("GATEWAY", lambda record: record["gateway"]),
    render.Column("INTERFACE", lambda record: record["interface"]),
    render.Column("MTU", lambda record: record["mtu"], "right"),
    render.Column("FROM", lambda record: record["source_mac"]),
    render.Column("TO", lambda record: record["destination_mac"]),
    render.Column("TAGS", lambda record: ".".join(map(str, record["tags"]))),
)

CLUSTERS = (
    render.Column("ID", lambda record: record["id"], "right"),
    render.Column("PREFIX", lambda record: record["prefix"]),
    render.Column("ALLOW", lambda record: ", ".join(record["allow"])),
    render.Column("PORTS", lambda record: "-".join(map(str, record["ports"]))),
    render.Column("FLOWS", lambda record: render.count(record["flows"]), "right"),
)


@click.command()
@shared_options
@with_session
def status(session: Session) -> None:
    """Is the relay running, on which datapath, and how full is it? Counters: `stats`."""
    with session.reader() as reader:
        found = reader.status()
    found.setdefault("kernel", session.kernel())
    if session.json:
        render.json_document(found)
    else:
        hidden = {"reasons"} | {name for name, value in found.items() if value is None}
        render.pairs(_lines({name: found[name] for name in found if name not in hidden}))


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
        shown = (each for each in value.values() if each not in (None, []))
        return " ".join(dict.fromkeys(map(_inline, shown)))
    return ".".join(map(str, value)) if isinstance(value, list) else str(value)


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


@click.command()
@shared_options
@with_session
def clusters(session: Session) -> None:
    """The configured clusters: where their transceivers may be, and how many flows lead there."""
    configured = session.clusters()
    if not configured:
        raise Failed("clusters stand in the configuration; give it with --config FILE")
    with session.reader() as reader:
        flows = reader.census().clusters
    found = [
        {
            "id": cluster.id,
            "prefix": str(cluster.prefix),
            "allow": [str(network) for network in cluster.allow],
            "ports": list(cluster.ports),
            "flows": flows[cluster.id],
        }
        for cluster in configured
    ]
    if session.json:
        render.json_document(found)
    else:
        render.table(CLUSTERS, found)
