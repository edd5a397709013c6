"""Run a service that is expected to give up, and look for what it left behind."""

import contextlib
import fcntl
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relayctl.datapath import links
from relayctl.datapath.libbpf import xdp_on
from relayctl.wire.route_token import Key
from tests.lab import namespace, service_config
from tests.lab.node import Node
from tests.lab.service_config import KEY_ID, Setup, Vip
from tests.lab.site import Site
from tests.lab.topology import BPFFS

PATIENCE_S = 80.0  # more than the relay has with its compiler
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
CONTROL_TOKEN = "sixteen-letters-or-more"

Done = subprocess.CompletedProcess[str]


@contextlib.contextmanager
def open_directory() -> Iterator[Path]:
    """A directory that everybody may enter: pytest closes its own with each start of any pytest."""
    with tempfile.TemporaryDirectory(prefix="ferryline-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@dataclass(frozen=True)
class Starter:
    """Services of a site whose configuration a test spoils. Each test has its own directory."""

    site: Site
    directory: Path  # that everybody may enter
    setup: Setup = field(init=False)

    def __post_init__(self) -> None:
        vip = Vip(1, self.site.vip, self.site.vip)
        setup = Setup(Key(KEY_ID, bytes(range(32))), CONTROL_TOKEN, (vip,))
        object.__setattr__(self, "setup", setup)
        self.keys.write_text(service_config.keys(setup))

    @property
    def keys(self) -> Path:
        return self.directory / "route.keys"

    @property
    def pins(self) -> Path:
        return BPFFS / "ferryline" / self.site.instance

    @property
    def lock(self) -> Path:
        return self.directory / f"{self.site.instance}.lock"

    def relay(self, **changes: str) -> list[str]:
        """The command that serves; `changes` are TOML values of keys outside of sections."""
        text = service_config.relay(self.site, self.setup, self.keys)
        return self._serve("relayctl", text, {"run_dir": f"'{self.directory}'"} | changes)

    def transceiver(self, **changes: str) -> list[str]:
        text = service_config.transceiver(self.site, self.setup, self.keys)
        return self._serve("transceiver", text, changes)

    def signaling(self, **changes: str) -> list[str]:
        where = f"{self.site.signaling_address[0]}:{self.site.signaling_address[1]}"
        text = service_config.signaling(
            self.site, self.setup, self.keys, listen=where, vip=self.site.vip
        )
        return self._serve("signaling", text, changes)

    def _serve(self, module: str, text: str, changes: Mapping[str, str]) -> list[str]:
        path = self.directory / f"{module}.toml"
        path.write_text(spoiled(text, changes))
        return [sys.executable, "-m", module, "serve", "--config", str(path)]

    def left_over(self) -> dict[str, Any]:
        """What a relay that did not start must not leave: empty if nothing."""
        relay = self.site.relay
        found: dict[str, Any] = {
            "processes": processes_in(relay),
            "attached": links.attached(self.pins) if self.pins.is_dir() else [],
            "programs": [name for name in ("outer0", "inner0") if program_on(relay, name)],
            "locked": is_locked(self.lock),
            "socket": (self.directory / f"{self.site.instance}.sock").exists(),
        }
        return {name: value for name, value in found.items() if value}


def spoiled(text: str, changes: Mapping[str, str]) -> str:
    """TOML with other values of the first key of each name; an empty one takes the key out, a new
    one goes to the top."""
    for key, value in changes.items():
        line = f"{key} = {value}\n" if value else ""
        found = re.search(rf"^{key} = .*\n", text, re.MULTILINE)
        text = text.replace(found[0], line, 1) if found else line + text
    return text


def run(
    node: Node, argv: Sequence[str], *, user: Sequence[str] = (), patience_s: float = PATIENCE_S
) -> Done:
    """Run it to its end, which has to come. `user`: a prefix such as `NOBODY`."""
    return node.run([*user, *argv], check=False, timeout_s=patience_s)


def program_on(node: Node, interface: str) -> int:
    """Id of the XDP program on an interface, or 0."""

    def ask() -> int:
        found = xdp_on(socket.if_nametoindex(interface))
        return found.native or found.generic

    return node.call(ask)


def processes_in(node: Node) -> list[str]:
    """Command lines of the processes whose network namespace is that of `node`."""
    assert node.namespace is not None
    inode = namespace.path(node.namespace).stat().st_ino
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdecimal() and (process / "ns/net").stat().st_ino == inode:
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def listening(node: Node, kind: int, address: tuple[str, int]) -> Any:
    """A socket that has `address` before a service wants it."""
    sock = node.socket(socket.AF_INET, kind)
    sock.bind(address)
    if kind == socket.SOCK_STREAM:
        sock.listen()
    os.set_inheritable(sock.fileno(), True)
    return sock
