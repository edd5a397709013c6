"""A transceiver of its own on 127.0.0.1, without a relay: a real process with real sockets."""

import secrets
import socket
import sys
import time
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relayctl.wire.address import Address, render
from relayctl.wire.route_token import Key, render_key
from tests.figures.measurement import MeasurementError
from tests.lab import http, service_config
from tests.lab.node import REPOSITORY, Node
from tests.lab.program import Program, Programs

HOST = "127.0.0.1"
DIRECTORY = REPOSITORY / "build" / "conversations"

_READY_S = 20.0


class Service:
    """A context manager. `sections` are tables of the configuration, by their names."""

    def __init__(
        self,
        backend: str,
        sections: Mapping[str, Mapping[str, object]] | None = None,
        *,
        directory: Path = DIRECTORY,
    ) -> None:
        self.address: Address = (HOST, free_port())
        self.calls_url = f"http://{render(self.address)}/v1/calls"
        self._programs = Programs(directory)
        self._node = Node(None, self._programs)
        self._config = config(directory, self.address, backend, sections or {})
        self._program: Program | None = None

    def __enter__(self) -> "Service":
        argv = [sys.executable, "-m", "transceiver", "serve", "--config", str(self._config)]
        self._program = self._node.popen("transceiver", argv)
        try:
            self._await()
        except BaseException:
            self._programs.stop_all()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._programs.stop_all()
        self._config.unlink(missing_ok=True)

    @property
    def program(self) -> Program:
        assert self._program is not None
        return self._program

    def memory(self) -> int:
        """Bytes that the process has for itself: heaps and stacks."""
        for line in Path(f"/proc/{self.program.pid}/smaps_rollup").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "Anonymous":
                return int(value.split()[0]) * 1024
        raise MeasurementError("the kernel does not tell what is anonymous memory")

    def call(self, call_id: str) -> dict[str, Any]:
        """What it knows about a call. Raises `MeasurementError` if that is no call."""
        response = http.request(self._node, f"{self.calls_url}/{call_id}")
        if response.status != 200:
            raise MeasurementError(f"GET /v1/calls/…: {response.status} {response.text[:200]}")
        shown: dict[str, Any] = response.json()
        return shown

    def _await(self) -> None:
        deadline = time.monotonic() + _READY_S
        while True:
            self.program.expect_running()
            try:
                if http.request(self._node, f"http://{render(self.address)}/readyz").status == 200:
                    return
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise MeasurementError(f"no transceiver after {_READY_S:.0f} s")
            time.sleep(0.05)


def config(
    directory: Path,
    listen: Address,
    backend: str,
    sections: Mapping[str, Mapping[str, object]],
    keys: Mapping[str, object] | None = None,
) -> Path:
    """Write the configuration of a transceiver without a relay; where it is. `keys` come on top."""
    directory.mkdir(parents=True, exist_ok=True)
    keys_file = directory / "route.keys"
    keys_file.touch(mode=0o600)
    keys_file.write_text(f"{render_key(Key(1, secrets.token_bytes(32)))}\n")
    text = service_config.toml(
        {
            "listen": render(listen),
            "inner": "plain",
            "cluster": 7,
            "keys_file": keys_file,
            "mint": 1,
            "max_lateness_ms": 10_000,  # it is not to refuse the calls that measure it
            "drain_s": 0,
            "backend": backend,
            **(keys or {}),
        }
    )
    for name, values in sections.items():
        text += f"\n[{name}]\n{service_config.toml(values)}"
    path = directory / f"transceiver-{listen[1]}.toml"
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def free_port() -> int:
    """A port that neither TCP nor UDP has in use now."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.bind((HOST, 0))
            port: int = udp.getsockname()[1]
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
                try:
                    tcp.bind((HOST, port))
                except OSError:
                    continue
                return port
