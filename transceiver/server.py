"""The running process: sockets, keys, calls and control API made from a configuration.

The composition root. UDP (media) and TCP (control API) have the same address and port: an endpoint
is a control address too.
"""

import asyncio
import contextlib
import errno
import functools
import logging
import secrets
import signal
import socket
import time
from collections.abc import Iterator

import uvicorn
import uvloop
from prometheus_client import CollectorRegistry

from relayctl.wire import address
from relayctl.wire.address import Address
from relayctl.wire.route_token import Key, KeyFileError, parse_keys
from transceiver import sctp
from transceiver.aiortc_parts import AiortcError
from transceiver.api import create_app
from transceiver.backends.echo import Echo
from transceiver.calls import Calls
from transceiver.config import TransceiverConfig
from transceiver.counts import Counts
from transceiver.dtls import Identity
from transceiver.framing import Framing, PlainFraming, SppFraming
from transceiver.metrics import Metrics
from transceiver.minting import Minter, MintingError
from transceiver.mux import Mux, open_socket
from transceiver.surroundings import Surroundings

BACKLOG = 128
GRACE_S = 1  # for HTTP requests under way at the end

log = logging.getLogger("transceiver")


class StartError(Exception):
    """The process cannot start as things are; names the thing and the mend."""


class Transceiver:
    """One process: `start` in a running loop, `stop` ends every call. Raises `StartError`."""

    def __init__(self, config: TransceiverConfig) -> None:
        self._config = config
        minter = check(config)
        try:
            sctp.prepare()
            identity = Identity()
        except AiortcError as error:
            raise StartError(str(error)) from None
        self.counts = Counts()
        self.registry = CollectorRegistry()
        metrics = Metrics(
            self.registry,
            self.counts,
            lambda: (call.state for call in self.calls),
            config.capacity,
        )
        self._control, media = _sockets(config.listen)
        self.mux = Mux(media, _framing(config), self.counts, time.monotonic)
        around = Surroundings(
            mux=self.mux,
            identity=identity,
            make_backend=functools.partial(Echo, mode=config.echo.mode),
            random_bytes=secrets.token_bytes,
            observe=metrics.observe,
            away_after_s=config.away_after_s,
            consent_s=config.consent_s,
            setup_s=config.setup_s,
        )
        self.calls = Calls(around, minter, config.capacity)
        self._http: _Http | None = None
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.mux.start(asyncio.get_running_loop())
        app = create_app(
            self.calls,
            self.registry,
            token=self._config.control_token,
            ready=lambda: self._http is not None and not self._http.should_exit,
        )
        self._http = _Http(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,  # it would show the ids of calls
                proxy_headers=False,
                server_header=False,
                lifespan="off",
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self._serving = asyncio.create_task(self._http.serve(sockets=[self._control]))
        log.info("listening on %s", address.render(self._config.listen))

    async def stop(self) -> None:
        """Close_notify to every call, then let requests under way finish."""
        self.calls.end_all()
        if self._http is not None and self._serving is not None:
            self._http.should_exit = True
            await self._serving
        self.mux.stop()
        self._control.close()


class _Http(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The process has one owner of signals, and it is not the HTTP server."""
        yield


def check(config: TransceiverConfig) -> Minter:
    """Look at what the configuration names. Raises `StartError`."""
    key = _key(config)
    prefix = config.cluster_prefix.network_address.packed[:12]
    try:
        return Minter(key, config.cluster, config.listen, secrets.token_bytes, prefix)
    except MintingError as error:
        raise StartError(f"listen = '{address.render(config.listen)}': {error}") from None


def run(config: TransceiverConfig) -> None:
    """Serve until SIGINT or SIGTERM. Raises `StartError`."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config))


async def _serve(config: TransceiverConfig) -> None:
    transceiver = Transceiver(config)
    asked_to_stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, asked_to_stop.set)
    await transceiver.start()
    await asked_to_stop.wait()
    log.info("stopping: %d calls end", len(transceiver.calls))
    await transceiver.stop()


def _framing(config: TransceiverConfig) -> Framing:
    return SppFraming(config.relay_networks) if config.inner == "spp" else PlainFraming()


def _key(config: TransceiverConfig) -> Key:
    where = f"keys_file = '{config.keys_file}'"
    try:
        keys = parse_keys(config.keys_file.read_text())
    except PermissionError as error:
        raise StartError(f"{where}: {error.strerror}; let this user read it") from None
    except OSError as error:
        mend = "make one with `relayctl token keygen`"
        raise StartError(f"{where}: {error.strerror}; {mend}") from None
    except (KeyFileError, UnicodeDecodeError) as error:
        raise StartError(f"{where}: {error}") from None
    if config.mint not in keys:
        have = ", ".join(map(str, sorted(keys)))
        raise StartError(f"mint = {config.mint}: the key file has {have}; choose one of these")
    return keys[config.mint]


def _sockets(listen: Address) -> tuple[socket.socket, socket.socket]:
    """TCP and UDP of one number."""
    shown = f"listen = '{address.render(listen)}'"
    family = socket.AF_INET6 if ":" in listen[0] else socket.AF_INET
    control = socket.socket(family, socket.SOCK_STREAM)
    try:
        control.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        control.bind(listen)
        control.listen(BACKLOG)
    except OSError as error:
        control.close()
        raise StartError(f"{shown}: TCP: {_mend(error, 'ss -ltnp', listen)}") from None
    try:
        return control, open_socket(listen)
    except OSError as error:
        control.close()
        raise StartError(f"{shown}: UDP: {_mend(error, 'ss -lunp', listen)}") from None


def _mend(error: OSError, command: str, listen: Address) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"another process has it; `{command} sport = :{listen[1]}` names it"
        case errno.EADDRNOTAVAIL:
            return "this host has no such address; `ip address` lists those it has"
        case errno.EACCES:
            return "ports below 1024 need CAP_NET_BIND_SERVICE; choose a higher one"
    return str(error.strerror)
