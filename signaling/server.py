"""The running service: files, socket, certificate and log made into one HTTP server.

The composition root. Whatever is wrong with the host's files or ports becomes a `StartError` that
names it and the mend.
"""

import datetime
import errno
import gc
import logging
import random
import resource
import socket
import ssl
import sys
from urllib.parse import unquote, urlsplit

import httpx
import uvicorn

from relayctl.wire import address
from relayctl.wire.redis_client import Client, RedisOptionError, open_redis
from relayctl.wire.route_token import Key, KeyFileError, parse_keys
from signaling.access import config as access_config
from signaling.app import create_app
from signaling.config import SignalingConfig, TlsSection
from signaling.faces.sideband import MAX_MESSAGE
from signaling.fleet.control_http import ControlHttp
from signaling.fleet.location import GeoReader, LocationError, open_geoip
from signaling.http import certificate
from signaling.http.accepting import Server
from signaling.http.gate import Gate
from signaling.redaction import Redacted

BACKLOG = 1024
SPARE_FILES = 512  # for connections of ours, logs and libraries
MIN_CONNECTIONS = 16
GRACE_S = 5  # requests under way get so long at the end
PING_S = 20.0  # between pings of a sideband, and until an unanswered one ends it
# an idle connection ends before the other side (5 s) closes it under a request
LIMITS = httpx.Limits(max_connections=256, max_keepalive_connections=64, keepalive_expiry=3.0)


# they tell each request they make, with its headers, and each message
TALKATIVE = ("httpx", "httpcore", "websockets")

log = logging.getLogger("signaling")


class StartError(Exception):
    """The service cannot start as things are."""


def check(config: SignalingConfig) -> dict[int, Key]:
    """The route keys, once all files the configuration names are good. Raises `StartError`."""
    if config.tls is not None:
        _load_chain(config.tls)
    _geoip(config)
    _redis(config)
    try:
        return parse_keys(config.keys_file.read_text())
    except PermissionError as error:
        fault = f"{error.strerror}; let this user read it"
        raise StartError(f"keys_file = '{config.keys_file}': {fault}") from None
    except OSError as error:
        fault = f"{error.strerror}; give the one that relays and transceivers have"
        raise StartError(f"keys_file = '{config.keys_file}': {fault}") from None
    except (KeyFileError, UnicodeDecodeError) as error:
        raise StartError(f"keys_file = '{config.keys_file}': {error}") from None


def serve(config: SignalingConfig, level: int = logging.INFO) -> None:
    """Serve until SIGINT or SIGTERM. Raises `StartError`."""
    configure_log(config, level)
    keys = check(config)
    tls = _tls(config)
    listening = listen(config.listen)
    _expect_guarded(config, listening)
    # an environment's proxy must not see what goes to transceivers and relays
    client = httpx.AsyncClient(trust_env=False, limits=LIMITS)
    app = create_app(
        config,
        client,
        exchange=ControlHttp(),
        keys=keys,
        dice=random.Random(),
        redis=_redis(config),
        geoip=_geoip(config),
        log=log,
    )
    gc.collect()
    gc.freeze()  # all this lives as long as the process: to look through it holds up every offer
    scheme = "https" if tls else "http"
    log.info("listening on %s://%s", scheme, address.render(listening.getsockname()[:2]))
    Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,  # it would show the ids of calls
            proxy_headers=False,
            server_header=False,
            lifespan="on",
            ws="websockets-sansio",
            ws_max_size=MAX_MESSAGE,
            ws_per_message_deflate=False,  # its memory, for each
            ws_ping_interval=PING_S,
            ws_ping_timeout=PING_S,
            timeout_graceful_shutdown=GRACE_S,
        ),
        _gate(config),
        tls,
    ).run(sockets=[listening])


def _expect_guarded(config: SignalingConfig, listening: socket.socket) -> None:
    """An inherited socket may be open to others. Raises `StartError`."""
    is_ip = listening.family in (socket.AF_INET, socket.AF_INET6)
    host = listening.getsockname()[0] if is_ip else "::"
    if access_config.unguarded(config, host):
        raise StartError(access_config.UNGUARDED)


def _gate(config: SignalingConfig) -> Gate:
    """As many connections as are configured, if the process may have so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    limit = max(min(config.limits.connections, hard - SPARE_FILES), MIN_CONNECTIONS)
    if limit < config.limits.connections:
        log.warning("at most %d connections: the process may open %d files", limit, hard)
    return Gate(limit, config.limits.connections_per_address, config.trusted_proxies)


def _redis(config: SignalingConfig) -> Client | None:
    """Connects when it is first used. Whoever uses it sets the deadline."""
    try:
        return open_redis(config.redis) if config.redis is not None else None
    except RedisOptionError as error:
        raise StartError(f"redis: {error}") from None


def _geoip(config: SignalingConfig) -> GeoReader | None:
    if config.geoip is None:
        return None
    try:
        return open_geoip(config.geoip)
    except LocationError as error:
        raise StartError(f"geoip = '{config.geoip}': {error}") from None


def configure_log(config: SignalingConfig, level: int) -> None:
    """Log to standard error, with every secret of ours taken out."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Redacted(secrets_of(config)))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging._srcfile = None  # none of our lines says where it was written
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    for library in TALKATIVE:
        logging.getLogger(library).setLevel(max(level, logging.WARNING))
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # it warns of what anybody sends
    logging.getLogger("uvicorn.error").addFilter(is_no_refusal)


def is_no_refusal(record: logging.LogRecord) -> bool:
    """uvicorn takes a WebSocket that was refused, by a whole HTTP answer, for one forgotten."""
    return "without completing handshake" not in str(record.msg)


def secrets_of(config: SignalingConfig) -> tuple[str, ...]:
    """What no log line may hold."""
    password = urlsplit(config.redis or "").password or ""
    return config.control_token, password, unquote(password)


def listen(where: address.Address | int) -> socket.socket:
    """The listening socket: bound here, or inherited. Raises `StartError`."""
    if isinstance(where, int):
        return _inherited(where)
    family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(where)
    except OSError as error:
        listening.close()
        mend = {
            errno.EADDRINUSE: "another program has it; choose another port",
            errno.EADDRNOTAVAIL: "this host has no such address",
            errno.EACCES: "ports below 1024 need a privilege; choose a higher one",
        }.get(error.errno or 0, error.strerror)
        raise StartError(f"listen = '{address.render(where)}': {mend}") from None
    listening.listen(BACKLOG)
    return listening


def _inherited(fd: int) -> socket.socket:
    try:
        inherited = socket.socket(fileno=fd)
    except OSError as error:
        raise StartError(f"listen = 'fd:{fd}': {error.strerror}; pass a socket") from None
    if not inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        inherited.detach()
        raise StartError(f"listen = 'fd:{fd}': the socket does not listen")
    return inherited


def _tls(config: SignalingConfig) -> ssl.SSLContext | None:
    files = config.tls_files
    if files is not None and config.tls_self_signed:
        now = datetime.datetime.now(datetime.UTC)
        try:
            fingerprint = certificate.ensure(files.cert, files.key, config.tls_self_signed, now)
        except OSError as error:
            raise StartError(f"state_dir = '{config.state_dir}': {error.strerror}") from None
        log.info("self-signed certificate %s, SHA-256 %s", files.cert, fingerprint)
    return _load_chain(files) if files is not None else None


def _load_chain(files: TlsSection) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(files.cert, files.key)
    except ssl.SSLError as error:
        raise StartError(
            f"tls: '{files.cert}' and '{files.key}' are no PEM pair: "
            f"{error.reason or 'one of them holds something else'}"
        ) from None
    except OSError as error:
        raise StartError(f"tls: '{files.cert}' or '{files.key}': {error.strerror}") from None
    return context
