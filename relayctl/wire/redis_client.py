"""Opens Redis, whichever kind a URL names, as every part of ours uses it.

Connections are bounded and made when first used; nothing is tried again but a connection that
broke meanwhile, once and at once. Whoever asks has a deadline of his own, and answers have none
here: redis-py keeps those by `asyncio.wait_for`, in which another one's cancellation may get lost.
"""

from typing import Any, cast

from redis.asyncio import (
    BlockingConnectionPool,
    Connection,
    Redis,
    RedisCluster,
    Sentinel,
    SSLConnection,
)
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from relayctl.wire import redis_url
from relayctl.wire.redis_url import RedisPlace

CONNECTIONS = 64
CONNECT_S = 1.0  # until there is a connection, new or free

Client = Redis | RedisCluster


class RedisOptionError(ValueError):
    """Something behind `?` is wrong; the message does not show the URL."""


def open_redis(url: str, *, connections: int = CONNECTIONS) -> Client:
    """Connects when it is first used; needs a running loop for a Cluster. Raises
    `RedisOptionError` and `RedisUrlError`."""
    place = redis_url.parse(url)
    try:
        options: dict[str, Any] = dict(parse_url(place.plain))
        options.setdefault("socket_timeout", None)
        options.setdefault("socket_connect_timeout", CONNECT_S)
        if "retry" in options:
            raise ValueError("'retry' is no text")
        options["retry"] = Retry(NoBackoff(), 1)
        _check(options)
        if place.kind == "cluster":
            return _cluster(place, options, connections)
        if place.kind == "sentinel":
            return _sentinel(place, options, connections)
        options.setdefault("timeout", CONNECT_S)
        options.setdefault("max_connections", connections)
        return Redis.from_pool(BlockingConnectionPool(**options))  # which it closes
    except (ValueError, TypeError, AttributeError, RedisError) as error:
        raise RedisOptionError(f"of its options behind `?`: {error}; take it out") from None


def _check(options: dict[str, Any]) -> None:
    """Make a connection, to nothing: it reads its options."""
    skipped = {"connection_class", "max_connections", "timeout"}
    skipped |= {name for name in options if name.startswith("sentinel_")}
    made = options.get("connection_class", Connection)
    made(**{name: value for name, value in options.items() if name not in skipped})


def _sentinel(place: RedisPlace, options: dict[str, Any], connections: int) -> Redis:
    """User and password are the master's; the Sentinels' own are `?sentinel_username=` and
    `sentinel_password=`. With TLS, everything has it."""
    for name in ("host", "port"):
        options.pop(name, None)
    ssl = options.pop("connection_class", None) is SSLConnection
    asking = {
        name: value
        for name, value in options.items()
        if name.startswith(("socket_", "ssl_")) or name == "retry"
    }
    for name in ("username", "password"):
        own = options.pop(f"sentinel_{name}", None)
        if own:
            asking[name] = own
    options.setdefault("max_connections", connections)
    sentinel = Sentinel(  # type: ignore[no-untyped-call]
        place.nodes, sentinel_kwargs={**asking, "ssl": ssl}
    )
    master: Redis = sentinel.master_for(place.master, ssl=ssl, **options)
    return master


def _cluster(place: RedisPlace, options: dict[str, Any], connections: int) -> RedisCluster:
    for name in ("host", "port", "db"):
        options.pop(name, None)
    ssl = options.pop("connection_class", None) is SSLConnection
    options.setdefault("max_connections", connections)
    return RedisCluster(
        startup_nodes=[ClusterNode(host, port) for host, port in place.nodes], ssl=ssl, **options
    )


async def close(client: Client) -> None:
    """End its connections, those to Sentinels too."""
    await client.aclose()
    if isinstance(client, Redis) and isinstance(client.connection_pool, SentinelConnectionPool):
        for each in client.connection_pool.sentinel_manager.sentinels:
            await each.aclose()


async def masters(client: Client) -> list[Any]:
    """Everyone whose keys make up the whole: what `scan` takes. Raises what Redis raises."""
    if not isinstance(client, RedisCluster):
        return [None]
    await client.initialize()
    return [*client.get_primaries()]


async def scan(
    client: Client, master: Any, cursor: int, pattern: str, count: int
) -> tuple[int, list[bytes]]:
    """One step through the keys of a master: where to go on (0: the end), and names."""
    if not isinstance(client, RedisCluster):
        return cast(tuple[int, list[bytes]], await client.scan(cursor, pattern, count))
    found: Any = await client.scan(cursor, pattern, count, target_nodes=master)
    cursors, names = found
    return next(iter(cursors.values())), names
