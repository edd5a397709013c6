"""`relayctl token`: make keys, make tokens, look into tokens.

The only output that holds a secret is that of `keygen`.
"""

import base64
import os
import secrets
from pathlib import Path

import click

from relayctl.cli import render
from relayctl.cli.flows import ADDRESS
from relayctl.cli.session import Failed, Session, shared_options, with_session
from relayctl.wire import address
from relayctl.wire.address import Address
from relayctl.wire.cluster import IPV4_PREFIX, Clusters, RouteError
from relayctl.wire.route_token import (
    KEY_IDS,
    NONCE_SIZE,
    SECRET_SIZE,
    Key,
    KeyFileError,
    Route,
    TokenError,
    open_token,
    parse_keys,
    render_key,
)
from relayctl.wire.route_token import mint as mint_token

KEY_ID = click.IntRange(0, 31)
KEY_FILE = click.Path(path_type=Path)


@click.group()
def token() -> None:
    """Route tokens and the keys that seal them."""


@token.command()
@click.option("--id", "key_id", type=KEY_ID, required=True, help="Id that tokens carry.")
@click.option("--out", type=KEY_FILE, help="Make this file (mode 0600), or add to it.")
def keygen(key_id: int, out: Path | None) -> None:
    """Make a random route key and print its line of a key file."""
    key = Key(key_id, secrets.token_bytes(SECRET_SIZE))
    if out is None:
        click.echo(render_key(key))
        click.echo("keep it in a file of mode 0600: --out FILE makes one", err=True)
        return
    try:
        _add_key(out, key)
    except (OSError, KeyFileError) as error:
        raise Failed(f"{out}: {_reason(error)}") from None
    click.echo(f"{out}: key {key_id} added; relays, transceivers and signaling need it", err=True)


def _add_key(path: Path, key: Key) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    with open(handle, "r+", encoding="ascii") as file:
        text = file.read()
        if text.strip() and key.id in parse_keys(text):
            raise KeyFileError(f"has a key {key.id} already; take another --id")
        file.write(("" if not text or text.endswith("\n") else "\n") + render_key(key) + "\n")


@token.command()
@click.option("--cluster", type=click.IntRange(0, 65535), required=True, help="Cluster id.")
@click.option("--endpoint", type=ADDRESS, required=True, help="The transceiver process.")
@click.option("--keys", type=KEY_FILE, help="Key file; default: keys_file of --config.")
@click.option("--id", "key_id", type=KEY_ID, help="Key to seal with; default: the only one.")
@shared_options
@with_session
def mint(
    session: Session, cluster: int, endpoint: Address, keys: Path | None, key_id: int | None
) -> None:
    """Make a route token, as a transceiver does for its ICE ufrag."""
    known = _keys(session, keys)
    if key_id is None and len(known) > 1:
        raise click.UsageError(f"which key? --id is one of {', '.join(map(str, sorted(known)))}")
    key = known.get(next(iter(known)) if key_id is None else key_id)
    if key is None:
        raise Failed(f"no key {key_id} in the key file; it has {', '.join(map(str, known))}")
    host = int.from_bytes(address.pack_host(endpoint[0])[12:], "big")
    made = mint_token(key, Route(cluster, host, endpoint[1], secrets.token_bytes(NONCE_SIZE)))
    if session.json:
        render.json_document({"token": made, "key": key.id})
    else:
        click.echo(made)


@token.command("open")
@click.argument("token")
@click.option("--keys", type=KEY_FILE, help="Key file; default: keys_file of --config.")
@shared_options
@with_session
def open_(session: Session, token: str, keys: Path | None) -> None:
    """Verify TOKEN (24 characters, or a whole ufrag pair) and show its route.

    With a configuration it also says whether the relay would follow it; exit code 1 if not.
    """
    text = token.partition(":")[0]
    try:
        route = open_token(_keys(session, keys), text.encode("utf-8", "surrogateescape"))
    except TokenError as error:
        raise Failed(f"the token does not open: {error}") from None
    allowed, why, endpoint = _judge(session, route)
    found = {
        "cluster": route.cluster,
        "endpoint": endpoint,
        "key": _key_id(text),
        "allowed": allowed,
        "reason": why,
    }
    if session.json:
        render.json_document(found)
    else:
        shown = {True: "yes", False: f"no: {why}", None: f"unknown: {why}"}[allowed]
        render.pairs(
            [*((name, found[name]) for name in ("cluster", "endpoint", "key")), ("allowed", shown)]
        )
    if allowed is False:
        raise SystemExit(1)


def _judge(session: Session, route: Route) -> tuple[bool | None, str | None, str]:
    """Allowed?, why not, and the endpoint as far as it is known."""
    clusters = [section.cluster() for section in session.clusters()]
    prefix = next((each.prefix for each in clusters if each.id == route.cluster), IPV4_PREFIX)
    packed = prefix.network_address.packed[:12] + route.host.to_bytes(4, "big")
    endpoint = address.render((address.unpack_host(packed), route.port))
    if not clusters:
        return None, "give --config to know", endpoint
    try:
        Clusters(clusters).endpoint(route)
    except RouteError as error:
        return False, str(error), endpoint
    return True, None, endpoint


def _key_id(token: str) -> int:
    """The low bits of the first byte of an opened token."""
    return base64.b64decode(token)[0] & (KEY_IDS.stop - 1)


def _keys(session: Session, path: Path | None) -> dict[int, Key]:
    if path is None:
        path = session.load_config().keys_file
    try:
        return parse_keys(path.read_text())
    except (OSError, UnicodeDecodeError, KeyFileError) as error:
        raise Failed(f"{path}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """Without the file's name, which the system's own errors repeat."""
    return (isinstance(error, OSError) and error.strerror) or str(error)
