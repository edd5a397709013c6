"""A daemon with the socket datapath on loopback, as a process of its own."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from relayctl.wire.address import Address
from relayctl.wire.route_token import Key, render_key
from tests.unit.relayctl.packet.test_sockets import LOOPBACK, free_port
from tests.unit.relayctl.packets import KEY

PATIENCE_S = 30.0

TOML = """
instance = "local"
datapath = "socket"
dev_local = true
keys_file = "{directory}/route.keys"
inner_address = "127.0.0.1"
inner_ports = 1
inner_port_base = {inner}
run_dir = "{directory}"
admin = "127.0.0.1:{admin}"
[[vip]]
id = 1
public = "127.0.0.1:{vip}"
[[cluster]]
id = 7
allow = ["127.0.0.0/8"]
"""


class LocalRelay:
    def __init__(self, directory: Path) -> None:
        self.vip: Address = (LOOPBACK, free_port())
        self.inner: Address = (LOOPBACK, free_port())
        admin = free_port()
        self.keys_file = directory / "route.keys"
        self.write_keys(KEY)
        self.config_file = directory / "relay.toml"
        self.config_file.write_text(
            TOML.format(directory=directory, inner=self.inner[1], vip=self.vip[1], admin=admin)
        )
        self.admin = httpx.Client(base_url=f"http://127.0.0.1:{admin}")
        self.control = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(directory / "local.sock")),
            base_url="http://relay",
        )
        self._directory = directory
        self._daemon: subprocess.Popen[str] | None = None

    def write_keys(self, *keys: Key) -> None:
        self.keys_file.write_text("\n".join(map(render_key, keys)))

    def start(self) -> None:
        self._daemon = self.launch()
        self.until(lambda: self.admin.get("/readyz").status_code == 200)

    def launch(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "relayctl", "serve", "--config", str(self.config_file)]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def give_up(self) -> tuple[int, str]:
        """Start one that cannot run: its exit code and what it said."""
        with self.launch() as process:
            try:
                _, said = process.communicate(timeout=PATIENCE_S)
            finally:
                process.kill()  # or waiting for it would have no end
        return process.returncode, said

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.admin.get("/v1/status").json()
        return found

    @staticmethod
    def until(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                if condition():
                    return
            time.sleep(0.05)
        raise AssertionError("it did not happen")

    def signal(self, number: signal.Signals) -> None:
        assert self._daemon
        self._daemon.send_signal(number)

    def wait(self) -> int:
        """Exit code, once it has ended; its packet process may live on."""
        assert self._daemon
        return self._daemon.wait(timeout=PATIENCE_S)

    def end(self) -> tuple[int, str]:
        """Exit code and what it said, once it has ended."""
        assert self._daemon
        _, said = self._daemon.communicate(timeout=PATIENCE_S)
        code, self._daemon = self._daemon.returncode, None
        return code, said

    def close(self) -> None:
        self.admin.close()
        self.control.close()
        if self._daemon:
            self._daemon.kill()
            self._daemon.communicate()


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    with contextlib.suppress(FileNotFoundError):
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    return False


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
