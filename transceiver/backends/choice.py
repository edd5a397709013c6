"""What makes the backend of each call: chosen and prepared by the configuration, once a process."""

import asyncio
import functools
import random
import ssl
from collections.abc import Callable

from transceiver.backends import echo
from transceiver.backends.base import Backend, BackendFactory, Client
from transceiver.backends.keeper import Terms
from transceiver.backends.parrot import Parrot
from transceiver.backends.realtime.backend import Realtime
from transceiver.backends.realtime.target import Target
from transceiver.config import TransceiverConfig
from transceiver.recogniser import Recogniser
from transceiver.turns.settings import Limits, Sensitivity
from transceiver.turns.vad import Stock


class Backends:
    """`make` is for a running loop. `key` is the secret that the server of `realtime` is shown.

    Raises `VadError` and `RecogniserError`, see `host.check`."""

    def __init__(
        self, config: TransceiverConfig, key: str | None, clock: Callable[[], float]
    ) -> None:
        self._config = config
        self._buffer_s = config.session.client_buffer_ms / 1000
        self._terms = Terms(config.session.length_s, config.session.warning_s)
        self._recogniser: Recogniser | None = None
        self.make: BackendFactory
        match config.backend:
            case "echo":
                self.make = functools.partial(echo.make, mode=config.echo.mode, terms=self._terms)
            case "parrot":
                self.make = self._parrots()
            case "realtime":
                self.make = self._realtime(key, clock)

    def close(self) -> None:
        """After the last call."""
        if self._recogniser is not None:
            self._recogniser.close()

    def _parrots(self) -> BackendFactory:
        parrot = self._config.parrot
        vads = Stock(parrot.vad)
        vads.fill()
        limits = Limits(playing=Sensitivity(min_speech_ms=parrot.interruption_ms))
        if parrot.transcribe:
            self._recogniser = Recogniser()

        def make(client: Client) -> Backend:
            backend = Parrot(
                client,
                vads,
                self._terms,
                think_s=parrot.think_ms / 1000,
                client_buffer_s=self._buffer_s,
                echo_guard=self._config.session.echo_guard,
                limits=limits,
                recogniser=self._recogniser,
            )
            asyncio.get_running_loop().run_in_executor(None, vads.fill)
            return backend

        return make

    def _realtime(self, key: str | None, clock: Callable[[], float]) -> BackendFactory:
        section = self._config.realtime
        target = Target(
            section.url, section.model, key, section.headers, section.dialect, section.connect_s
        )
        return functools.partial(
            Realtime,
            target=target,
            terms=self._terms,
            clock=clock,
            random=random.random,
            tls=ssl.create_default_context() if target.is_secure else None,
            client_buffer_s=self._buffer_s,
        )
