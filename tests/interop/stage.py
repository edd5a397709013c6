"""What all clients of a run share: a lab with the services, and the model behind them.

Built when the first client asks for it, gone when the run ends. Pages of clients are bundled here,
too. `LAB_PREFIX` names the lab.
"""

import contextlib
import dataclasses
import json
import os
import secrets
import socket
import subprocess
import urllib.request
from functools import cached_property
from pathlib import Path

import numpy as np

from signaling.access import api_keys
from signaling.access.api_keys import ApiKey
from tests.browser import browser
from tests.conversations.mouth import cut
from tests.interop.install import HERE
from tests.interop.model import Model
from tests.lab import speech
from tests.lab.node import REPOSITORY
from tests.lab.services import Services
from tests.lab.site import Site, in_lab
from tests.lab.topology import Lab

DIRECTORY = REPOSITORY / "build" / "test-interop"
PREFIX = os.environ.get("LAB_PREFIX", "fi-")
MINUTES_SAID = 2.0  # of speech in the microphone
_TLS_PORT = 8443
_BREATH_S = 0.1  # between phrases: no pause ends a turn


class Stage:
    """A context manager."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self.api_key = api_keys.render(secrets.token_bytes(api_keys.RANDOM_BYTES))

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def services(self) -> Services:
        lab = self._open.enter_context(Lab(PREFIX))
        # Whoever waits for the services does it where clients are.
        site = dataclasses.replace(in_lab(lab), host=lab.client)
        self.model = self._open.enter_context(Model(site.transceiver))
        model = {"url": self.model.url, "model": "test-model"}
        services = Services(site, backend="realtime", model=model)
        key = ApiKey("interop", api_keys.digest_of(self.api_key), offers_per_minute=0)
        services.setup = dataclasses.replace(services.setup, api_keys=(key,))
        return self._open.enter_context(services)

    @cached_property
    def tls_url(self) -> str:
        """A replica behind https, for clients that know nothing else."""
        host, _ = self.site.signaling_address
        listener = self.site.signaling.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._open.enter_context(listener)
        listener.bind((host, _TLS_PORT))
        listener.listen(128)
        self.services.start_signaling_at("signaling-tls", listener, self.site.vip, host)
        return f"https://{host}:{_TLS_PORT}"

    @property
    def certificate(self) -> Path:
        """Of `tls_url`; nobody signed it."""
        return self.site.directory / "signaling.crt"

    @cached_property
    def ephemeral_key(self) -> str:
        """As a site's server asks for it, for its browsers."""
        request = urllib.request.Request(
            f"{self.url}/v1/realtime/client_secrets",
            data=b'{"session": {"type": "realtime", "model": "test-model"}}',
            headers={
                "Authorization": f"Bearer {self.api_key}",
                "Content-Type": "application/json",
            },
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        answer = self.site.client.call(lambda: direct.open(request, timeout=5).read())
        return str(json.loads(answer)["value"])

    @property
    def site(self) -> Site:
        return self.services.site

    @property
    def url(self) -> str:
        """Where clients find the services."""
        return self.site.base_url

    @cached_property
    def microphone(self) -> Path:
        """A WAV file of what clients say."""
        path = DIRECTORY / "microphone.wav"
        speech.write_wav(path, np.tile(words(), round(MINUTES_SAID * 60 / seconds_of_words())))
        return path

    @cached_property
    def pages(self) -> Path:
        """The directory of the bundled pages. Raises `CalledProcessError`."""
        directory = DIRECTORY / "pages"
        entries = [str(path) for path in sorted((HERE / "pages").glob("*.js"))]
        bundle = [str(browser.node()), str(HERE / "bundle.mjs"), str(directory), *entries]
        subprocess.run(bundle, check=True)
        return directory


def words() -> speech.Samples:
    """What clients say: phrases without a pause, 48 kHz."""
    breath = np.zeros(round(_BREATH_S * speech.RATE), np.float32)
    pieces = [part for phrase in cut(speech.read(speech.OTHER)) for part in (phrase, breath)]
    return np.concatenate(pieces)


def seconds_of_words() -> float:
    return len(words()) / speech.RATE
