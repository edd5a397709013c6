"""The Go relay beside us, built with Debian's compiler and the standard library alone."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.bench import flow_opening, wire
from tests.bench.bpf import HERE
from tests.bench.generator import Generator
from tests.bench.rig import DIRECTORY, Rig
from tests.bench.subjects import legs
from tests.bench.subjects.base import NotRun
from tests.bench.subjects.process import ProcessRelay, listens
from tests.bench.wire import HOSTS, SPORT, VIP


def build() -> Path:
    """The program. Raises `NotRun`."""
    if not shutil.which("go"):
        raise NotRun("no Go compiler: apt install golang-go")
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    binary = DIRECTORY / "go_relay"
    environ = os.environ | {"GOPROXY": "off", "CGO_ENABLED": "0"}
    made = subprocess.run(
        ["go", "build", "-o", str(binary), "."],
        cwd=HERE / "go_relay",
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise NotRun(f"go build: {made.stderr.strip()}")
    return binary


def go_relay(rig: Rig) -> ProcessRelay:
    argv = [str(build()), "-vip", f"{VIP[4][0]}:{VIP[4][1]}"]
    argv += ["-inner", f"{HOSTS[4]['inner0']}:{SPORT}"]
    first = wire.from_client(4, flow_opening.binding_request(flow_opening.hex_ufrag()))
    return ProcessRelay(
        *(rig, [legs.forward()], "Go relay", argv),
        ready=lambda: listens(rig, VIP[4][1]),
        opening=lambda flows: Generator(rig, [(first, "gen0")]),
    )
