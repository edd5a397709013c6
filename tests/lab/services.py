"""Start and stop relay, transceiver and signaling at a `Site`."""

import contextlib
import dataclasses
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from relayctl.datapath import xdp
from relayctl.wire.address import Address, render
from relayctl.wire.route_token import Key
from signaling.access.api_keys import ApiKey
from tests.lab import http, service_config
from tests.lab.node import Node
from tests.lab.program import Program, ProgramError
from tests.lab.service_config import KEY_ID, Backend, Cluster, Datapath, Echo, Setup, Vip
from tests.lab.site import Site
from tests.lab.topology import BPFFS

_READY_S = 40.0  # the first start of the relay compiles


class Services:
    """A context manager. Keys and control token are new each time."""

    def __init__(
        self,
        site: Site,
        *,
        datapath: Datapath = "xdp",
        echo: Echo = "audio",
        backend: Backend = "echo",
        model: Mapping[str, object] | None = None,
        capacity: int = 40,
        workers: int = 1,
        relays: int = 1,
        more_vips: tuple[Vip, ...] = (),
        clusters: tuple[Cluster, ...] = (),
        redis: str = "",
        api_keys: tuple[ApiKey, ...] = (),
        log_level: str = "info",
        listener: socket.socket | None = None,
        setup_s: float = 15.0,
        transceiver_module: str = "transceiver",
        signaling_module: str = "signaling",
    ) -> None:
        """`relays`: how many of the site's. `echo`: "opus" sends payloads back as they are, for a
        fraction of the work. `model`: the section of another `backend`. `listener`: a socket of
        the host for signaling, instead of the site's own address."""
        self.site = dataclasses.replace(site, more_relays=site.more_relays[: relays - 1])
        self.setup = Setup(
            key=Key(KEY_ID, secrets.token_bytes(32)),
            control_token=secrets.token_urlsafe(24),
            vips=(Vip(1, site.vip, site.vip), *more_vips),
            datapath="socket" if site.dev_local else datapath,
            backend=backend,
            model={"mode": echo} if backend == "echo" else model or {},
            capacity=capacity,
            workers=workers,
            clusters=clusters,
            redis=redis,
            api_keys=api_keys,
            setup_s=setup_s,
        )
        self.log_level = log_level
        self.listener = listener
        self.transceiver_module = transceiver_module
        self.signaling_module = signaling_module
        self.programs: dict[str, Program] = {}

    def __enter__(self) -> "Services":
        try:
            self.write(self._keys.name, service_config.keys(self.setup))
            with ThreadPoolExecutor() as pool:
                starting = [pool.submit(self.start_relay, n) for n in range(len(self.site.relays))]
                for started in [*starting, pool.submit(self.start_transceiver)]:
                    started.result()
            self.start_signaling()
        except BaseException:
            self.stop(check=False)
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.stop(check=kind is None)

    @property
    def relay(self) -> Program:
        return self.programs["relay"]

    @property
    def relays(self) -> list[Program]:
        return [self.programs[_relay_name(n)] for n in range(len(self.site.relays))]

    @property
    def transceiver(self) -> Program:
        return self.programs["transceiver"]

    @property
    def signaling(self) -> Program:
        return self.programs["signaling"]

    def start_relay(self, n: int = 0) -> None:
        """Start, or start again after a kill; waits until it is ready."""
        if self.setup.datapath == "xdp":
            mount_bpffs()
        name, site = _relay_name(n), self.site.at_relay(n)
        config = self.write(f"{name}.toml", self.relay_text(n))
        self._start(name, site.relay, "relayctl", config)
        self._wait(name, site.relay, f"{site.admin_url}/readyz")

    def relay_text(self, n: int) -> str:
        """The configuration of a relay."""
        return service_config.relay(self.site.at_relay(n), self.setup, self._keys)

    def transceiver_text(self) -> str:
        """The configuration of the transceiver."""
        return service_config.transceiver(self.site, self.setup, self._keys)

    def kill_relay(self, n: int = 0, *, wipe: bool = False) -> None:
        """`kill -9` of the daemon; its program forwards on. `wipe`: as if the node was started
        anew, nothing of it is left in the kernel either."""
        self.programs[_relay_name(n)].kill()
        if wipe and self.setup.datapath == "xdp":
            # Not `relayctl unload`: that would wait for the last heartbeat to be stale.
            xdp.unload(self.site.relays[n].instance, str(BPFFS))

    def start_transceiver(self) -> None:
        config = self.write("transceiver.toml", self.transceiver_text())
        self._start("transceiver", self.site.transceiver, self.transceiver_module, config)
        self._wait("transceiver", self.site.transceiver, f"{self.site.transceiver_url}/readyz")

    def start_another(self, name: str, node: Node, endpoint: Address, cluster: int) -> None:
        """One more transceiver. Signaling finds it where there is a Redis."""
        site = dataclasses.replace(self.site, transceiver=node, endpoint=endpoint)
        text = service_config.transceiver(site, self.setup, self._keys, cluster)
        self._start(name, node, self.transceiver_module, self.write(f"{name}.toml", text))
        self._wait(name, node, f"{site.transceiver_url}/readyz")

    def start_signaling(self) -> None:
        if self.listener is not None:
            self.start_signaling_at("signaling", self.listener, self.site.vip)
            return
        listen = render(self.site.signaling_address)
        text = service_config.signaling(
            self.site, self.setup, self._keys, listen=listen, vip=self.site.vip
        )
        config = self.write("signaling.toml", text)
        self._start("signaling", self.site.signaling, self.signaling_module, config)
        self._wait("signaling", self.site.signaling, f"{self.site.base_url}/readyz")

    def start_signaling_at(
        self, name: str, listener: socket.socket, vip: Address, certificate_for: str = ""
    ) -> None:
        """Serve on a listening socket of the host, with answers that name `vip`."""
        number = listener.fileno()
        text = service_config.signaling(
            self.site,
            self.setup,
            self._keys,
            listen=f"fd:{number}",
            vip=vip,
            certificate_for=certificate_for,
        )
        config = self.write(f"{name}.toml", text)
        self._start(name, self.site.signaling, self.signaling_module, config, pass_fds=[number])
        scheme = "https" if certificate_for else "http"
        where = render(listener.getsockname())
        self._wait(name, self.site.host, f"{scheme}://{where}/readyz")

    def stop(self, *, check: bool = True) -> None:
        """In reverse order; then the relay's pins go. Raises `ProgramError` for a bad end."""
        faults = []
        while self.programs:
            name, program = self.programs.popitem()
            status = program.stop()
            if status not in (0, -signal.SIGTERM):
                faults.append(f"{name} ended with status {status}\n{program.tail()}")
        if self.setup.datapath == "xdp":
            for n in range(len(self.site.relays)):
                self.relayctl("unload", "--yes", check=check, relay=n)
        if check and faults:
            raise ProgramError("\n".join(faults))

    def relayctl(
        self, *arguments: str, check: bool = True, relay: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """Run the operator's tool beside a relay."""
        config = self._path(f"{_relay_name(relay)}.toml")
        command = [sys.executable, "-m", "relayctl", "--config", str(config)]
        done = self.site.relays[relay].node.run([*command, *arguments], check=False)
        if check and done.returncode:
            raise ProgramError(f"relayctl {' '.join(arguments)}: {done.stderr}")
        return done

    def flows(self, n: int = 0) -> list[dict[str, Any]]:
        """The flow table of a relay, as its API shows it."""
        flows: list[dict[str, Any]] = self.ask_relay("/v1/flows", n).json()["flows"]
        return flows

    def reasons(self, n: int = 0) -> dict[str, int]:
        """A relay's packets by reason since it was loaded; program and packet process."""
        records = self.ask_relay("/v1/reasons", n).json()["reasons"]
        return {record["reason"]: record["count"] for record in records}

    def ask_relay(self, path: str, n: int = 0) -> http.Response:
        """What the admin HTTP of a relay says to a GET."""
        site = self.site.at_relay(n)
        return http.request(site.relay, f"{site.admin_url}{path}")

    def call(self, call_id: str) -> http.Response:
        """What the transceiver knows about a call."""
        url = f"{self.site.transceiver_url}/v1/calls/{call_id}"
        return http.request(self.site.transceiver, url, token=self.setup.control_token)

    def write(self, name: str, text: str) -> Path:
        """A file that only we may read: most of these hold secrets."""
        path = self._path(name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        return path

    def _path(self, name: str) -> Path:
        return self.site.directory / name

    @property
    def _keys(self) -> Path:
        return self._path("route.keys")

    def _start(
        self, name: str, node: Node, module: str, config: Path, pass_fds: Sequence[int] = ()
    ) -> None:
        command = [sys.executable, "-m", module, "serve", "--config", str(config)]
        if module != "relayctl":  # it has no levels
            command += ["--log-level", self.log_level]
        self.programs.pop(name, None)
        self.programs[name] = node.popen(name, command, pass_fds=pass_fds)

    def _wait(self, name: str, node: Node, url: str) -> None:
        wait_for(self.programs[name], node, url)


def _relay_name(n: int) -> str:
    """The first one bears no letter: most tests have but one."""
    return f"relay-{chr(ord('a') + n)}" if n else "relay"


def wait_for(program: Program, node: Node, url: str) -> None:
    """Until `/readyz` says 200. Raises `ProgramError` with the end of the log."""
    deadline = time.monotonic() + _READY_S
    last = "nobody listens"
    while time.monotonic() < deadline:
        program.expect_running()
        with contextlib.suppress(OSError):
            answer = http.request(node, url)
            if answer.status == 200:
                return
            last = f"{answer.status} {answer.text.strip()}"
        time.sleep(0.05)
    raise ProgramError(
        f"{program.name} is not ready after {_READY_S:.0f} s: {url}: {last}\n{program.tail()}"
    )


def mount_bpffs() -> None:
    """As systemd does at boot. Pins need it."""
    with open("/proc/self/mounts") as mounts:
        mounted = any(line.split()[1:3] == [str(BPFFS), "bpf"] for line in mounts)
    if not mounted:
        subprocess.run(["mount", "-t", "bpf", "bpf", str(BPFFS)], check=True)
