"""Where Redis is, as one URL says it: a single server, one behind Sentinels, or a Cluster.

Pure. `redis://`, `rediss://` and `unix://` as redis-py has them; `redis+sentinel://[<user>:
<password>@]<host>:<port>,…/<master>[/<db>]`; `redis+cluster://<host>:<port>,…`; both with `rediss+`
for TLS. Options stand behind `?`. Errors never show the URL: it may hold a password.
"""

import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

SINGLE = ("redis", "rediss", "unix")
SENTINEL = ("redis+sentinel", "rediss+sentinel")
CLUSTER = ("redis+cluster", "rediss+cluster")
PORTS = {SENTINEL: 26379, CLUSTER: 6379}
_URL = re.compile(r"([a-z+]+)://([^/?#]*)(/[^?#]*)?(?:\?([^#]*))?")  # several hosts are no netloc
MEND = "write 'redis://[:<password>@]<host>:<port>/0'"


class RedisPlace(NamedTuple):
    """`plain` is a URL of one server with the user, options and TLS of the whole; `master` is for
    Sentinels only."""

    kind: str  # "single", "sentinel", "cluster"
    plain: str
    nodes: tuple[tuple[str, int], ...] = ()
    master: str = ""


class RedisUrlError(ValueError):
    """The URL names no Redis."""


def parse(url: str) -> RedisPlace:
    """Raises `RedisUrlError`, which never shows the URL."""
    whole = _URL.fullmatch(url)
    if whole is None:
        raise RedisUrlError(f"is no Redis; {MEND}")
    scheme, netloc, path, query = whole.groups(default="")
    if scheme in SINGLE:
        _check_single(url)
        return RedisPlace("single", url)
    kinds = {SENTINEL: "sentinel", CLUSTER: "cluster"}
    schemes = next((each for each in kinds if scheme in each), None)
    if schemes is None:
        raise RedisUrlError(f"is no Redis; {MEND}, 'redis+sentinel://…' or 'redis+cluster://…'")
    user, at, hosts = netloc.rpartition("@")
    nodes = tuple(_node(each, PORTS[schemes]) for each in hosts.split(","))
    path = path.strip("/")
    master, _, db = path.partition("/") if schemes is SENTINEL else ("", "", path)
    if schemes is SENTINEL and not master:
        raise RedisUrlError(
            "names no master; write 'redis+sentinel://<host>:26379,<host>:26379/<master>/0'"
        )
    if (db and not db.isdecimal()) or (schemes is CLUSTER and db.strip("0")):
        raise RedisUrlError("has a strange path; a Cluster has none, a database is a number")
    tls = scheme.partition("+")[0]
    plain = urlunsplit((tls, f"{user}{at}{hosts.split(',')[0]}", f"/{db or 0}", query, ""))
    return RedisPlace(kinds[schemes], plain, nodes, unquote(master))


def _check_single(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_whole = (
            bool(parts.path) if parts.scheme == "unix" else parts.hostname and parts.port != 0
        )
    except ValueError:  # of the port
        is_whole = False
    if not is_whole:
        raise RedisUrlError(f"is no Redis; {MEND}")


def _node(text: str, port: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname or "", port if parts.port is None else parts.port
    except ValueError:
        host = ""
    if not host or not port:
        raise RedisUrlError("has a server without a host or with a bad port; write <host>:<port>")
    return host, port
