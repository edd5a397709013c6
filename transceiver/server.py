"""The running process: sockets, keys, calls and control API made from a configuration.

The composition root. UDP (media) and TCP (control API) have the same address and port: an endpoint
is a control address too.
"""

import asyncio
import contextlib
import gc
import importlib.metadata
import logging
import secrets
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime

import uvicorn
import uvloop
from prometheus_client import CollectorRegistry

from relayctl.wire import address
from relayctl.wire.redis_client import Client, open_redis
from relayctl.wire.registration import Registration
from transceiver import codec_speed, host, sctp
from transceiver.admission import Admission, capacity_for
from transceiver.aiortc_parts import AiortcError
from transceiver.api import create_app
from transceiver.audio.opus import CodecError
from transceiver.audio.pacer import Pacer
from transceiver.backends.choice import Backends
from transceiver.calls import Calls
from transceiver.config import TransceiverConfig
from transceiver.counts import Counts
from transceiver.drain import Drain
from transceiver.dtls import Identity
from transceiver.framing import Framing, PlainFraming, SppFraming
from transceiver.host import StartError
from transceiver.lifeline import Beat
from transceiver.metrics import Metrics
from transceiver.mux import Mux
from transceiver.recogniser import RecogniserError
from transceiver.registration import Registrar
from transceiver.resume.resumption import Resumption
from transceiver.resume.vault import Vault
from transceiver.resume.writer import Writer
from transceiver.sideband import MAX_MESSAGE
from transceiver.surroundings import Surroundings
from transceiver.turns.vad import VadError

GRACE_S = 1  # for HTTP requests under way at the end
PING_S = 20.0  # between pings of a sideband, and until an unanswered one ends it

log = logging.getLogger("transceiver")


class Transceiver:
    """One process: `start` in a running loop, `stop` ends every call. Raises `StartError`."""

    def __init__(self, config: TransceiverConfig) -> None:
        self._config = config
        minter = host.check(config)
        try:
            sctp.prepare()
            identity = Identity()
            capacity = config.capacity or capacity_for(codec_speed.measure())
            self._backends = Backends(config, host.realtime_key(config), time.monotonic)
        except (AiortcError, CodecError, RecogniserError, VadError) as error:
            raise StartError(str(error)) from None
        self.counts = Counts()
        self.registry = CollectorRegistry()
        self.pacer = Pacer(time.monotonic, self.counts.lateness)
        admission = Admission(
            capacity, lambda: self.pacer.quantile(0.99), config.max_lateness_ms / 1000
        )
        metrics = Metrics(
            self.registry,
            self.counts,
            lambda: (call.describe() for call in self.calls),
            admission,
            self.pacer.quantile,
        )
        self._control, media = host.sockets(config.listen)
        self.mux = Mux(media, _framing(config), self.counts, time.monotonic)
        self._vault = self._make_vault(config)
        records = None if self._vault is None else Writer(self._vault, self.counts.records)
        self._resumption = Resumption(self._vault, records, self.counts.resumes)
        around = Surroundings(
            mux=self.mux,
            pacer=self.pacer,
            identity=identity,
            backend=config.backend,
            make_backend=self._backends.make,
            random_bytes=secrets.token_bytes,
            observe=metrics.observe,
            stamp=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"),
            records=records,
            away_after_s=config.away_after_s,
            consent_s=config.consent_s,
            setup_s=config.setup_s,
        )
        self.calls = Calls(around, minter, admission)
        self.drain = Drain(self.calls, config.drain_s, self._close, self.calls.finish_all)
        self._version = importlib.metadata.version("ferryline")
        self._registrar = self._make_registrar(config)
        self._http: _Http | None = None
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.mux.start(asyncio.get_running_loop())
        self.pacer.start(asyncio.get_running_loop())
        app = create_app(
            self.calls,
            self.registry,
            token=self._config.control_token,
            drain=self.drain.begin,
            status=self.status,
            resumption=self._resumption,
        )
        self._http = _Http(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,  # it would show the ids of calls
                proxy_headers=False,
                server_header=False,
                lifespan="off",
                ws="websockets-sansio",
                ws_max_size=MAX_MESSAGE,
                ws_per_message_deflate=False,  # its memory, for each
                ws_ping_interval=PING_S,
                ws_ping_timeout=PING_S,
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self._serving = asyncio.create_task(self._http.serve(sockets=[self._control]))
        if self._registrar is not None:
            self._registrar.start()
        if self._resumption.writer is not None:
            self._resumption.writer.start()
        capacity = self.calls.admission.capacity
        log.info("listening on %s for %d calls", address.render(self._config.listen), capacity)

    def status(self) -> dict[str, object]:
        """What an operator wants to know."""
        endpoint, backend = address.render(self._config.listen), self._config.backend
        return {"endpoint": endpoint, **asdict(self._figures()), "backend": backend}

    async def stop(self) -> None:
        """Close_notify to every call, then let requests under way finish."""
        if self._registrar is not None:
            await self._registrar.stop()
        self.calls.end_all()
        if self._resumption.writer is not None and self._vault is not None:
            await self._resumption.writer.stop()
            await self._vault.close()
        self._backends.close()
        if self._http is not None and self._serving is not None:
            self._http.should_exit = True
            await self._serving
        self.pacer.stop()
        self.mux.stop()
        self._control.close()

    def _close(self) -> None:
        """Take no more calls, and say so."""
        self.calls.admission.close()
        if self._registrar is not None:
            self._registrar.tell()

    def _make_vault(self, config: TransceiverConfig) -> Vault | None:
        if config.redis is None or not config.keeps_calls:
            return None
        return Vault(_open_redis(config.redis))

    def _make_registrar(self, config: TransceiverConfig) -> Registrar | None:
        if config.redis is None:
            return None
        redis = _open_redis(config.redis)
        return Registrar(redis, config.listen, self._figures, self.counts.registrations)

    def _figures(self) -> Registration:
        admission = self.calls.admission
        return Registration(
            cluster=self._config.cluster,
            calls=len(self.calls),
            capacity=admission.capacity,
            lateness_ms=round(self.pacer.quantile(0.99) * 1000, 1),
            draining=admission.draining,
            version=self._version,
        )


class _Http(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The process has one owner of signals, and it is not the HTTP server."""
        yield


def run(config: TransceiverConfig, beat: Beat | None = None) -> None:
    """Serve until it is told to end and has drained. `beat` tells a supervisor.

    Raises `StartError`."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config, beat))


async def _serve(config: TransceiverConfig, beat: Beat | None) -> None:
    transceiver = Transceiver(config)
    drain = transceiver.drain
    for number, handler in (
        (signal.SIGINT, drain.end),
        (signal.SIGTERM, drain.terminate),
        (signal.SIGHUP, drain.begin),
    ):
        asyncio.get_running_loop().add_signal_handler(number, handler)
    await transceiver.start()
    gc.collect()
    gc.freeze()  # all this lives as long as the process: to look through it holds up every call
    if beat is not None:
        beat.start()
    await drain.over()
    log.info("stopping: %d calls end", len(transceiver.calls))
    await transceiver.stop()
    if beat is not None:
        beat.stop()


def _open_redis(url: str) -> Client:
    try:
        return open_redis(url)
    except ValueError as error:  # of what stands behind `?`
        raise StartError(f"redis: {error}") from None


def _framing(config: TransceiverConfig) -> Framing:
    return SppFraming(config.relay_networks) if config.inner == "spp" else PlainFraming()
