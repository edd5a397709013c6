"""The running service: files, socket, certificate and log made into one HTTP server.

The composition root. Whatever is wrong with the host's files or ports becomes a `StartError` that
names it and the mend.
"""

import datetime
import errno
import logging
import random
import socket
import ssl
import sys

import httpx
import uvicorn

from relayctl.wire import address
from relayctl.wire.route_token import Key, KeyFileError, parse_keys
from signaling import certificate
from signaling.app import create_app
from signaling.config import SignalingConfig, TlsSection
from signaling.redaction import Redacted

BACKLOG = 1024
GRACE_S = 5  # requests under way get so long at the end
# an idle connection ends before the other side (5 s) closes it under a request
LIMITS = httpx.Limits(max_connections=256, max_keepalive_connections=64, keepalive_expiry=3.0)

log = logging.getLogger("signaling")


class StartError(Exception):
    """The service cannot start as things are."""


def check(config: SignalingConfig) -> dict[int, Key]:
    """The route keys, once all files the configuration names are good. Raises `StartError`."""
    if config.tls is not None:
        _load_chain(config.tls)
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
    # an environment's proxy must not see what goes to transceivers and relays
    client = httpx.AsyncClient(trust_env=False, limits=LIMITS)
    app = create_app(config, client, keys=keys, dice=random.SystemRandom(), log=log)
    scheme = "https" if tls else "http"
    log.info("listening on %s://%s", scheme, address.render(listening.getsockname()[:2]))
    uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,  # it would show the ids of calls
            proxy_headers=False,
            server_header=False,
            lifespan="on",
            timeout_graceful_shutdown=GRACE_S,
            ssl_certfile=str(tls.cert) if tls else None,
            ssl_keyfile=str(tls.key) if tls else None,
        )
    ).run(sockets=[listening])


def configure_log(config: SignalingConfig, level: int) -> None:
    """Log to standard error, with every secret of ours taken out."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Redacted((config.control_token,)))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for library in ("httpx", "httpcore"):  # they tell each request they make
        logging.getLogger(library).setLevel(max(level, logging.WARNING))


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


def _tls(config: SignalingConfig) -> TlsSection | None:
    files = config.tls_files
    if files is not None and config.tls_self_signed:
        now = datetime.datetime.now(datetime.UTC)
        try:
            fingerprint = certificate.ensure(files.cert, files.key, config.tls_self_signed, now)
        except OSError as error:
            raise StartError(f"state_dir = '{config.state_dir}': {error.strerror}") from None
        log.info("self-signed certificate %s, SHA-256 %s", files.cert, fingerprint)
    if files is not None:
        _load_chain(files)
    return files


def _load_chain(files: TlsSection) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.cert, files.key)
    except ssl.SSLError as error:
        raise StartError(
            f"tls: '{files.cert}' and '{files.key}' are no PEM pair: {error.reason}"
        ) from None
    except OSError as error:
        raise StartError(f"tls: '{files.cert}' or '{files.key}': {error.strerror}") from None
