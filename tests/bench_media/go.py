"""The Go programs of this bench, built from Debian's packages alone; nothing is fetched."""

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.bench_media.rig import DIRECTORY
from tests.figures.measurement import MeasurementError

HERE = Path(__file__).parent
PACKAGES = "golang-go golang-github-pion-webrtc.v3-dev"
_SOURCES = Path("/usr/share/gocode")  # of Debian's packages; a GOPATH
PION = _SOURCES / "src/github.com/pion/webrtc"
_PATIENCE_S = 300.0


@functools.cache
def build(name: str) -> Path:
    """The program of directory `name`, built anew. Raises `MeasurementError`."""
    if not (shutil.which("go") and PION.exists()):
        raise MeasurementError(f"no Go compiler or no Pion: apt install {PACKAGES}")
    binary = DIRECTORY / name
    made = run(name, ["build", "-o", str(binary), "."])
    if made.returncode:
        raise MeasurementError(f"go build {name}: {made.stderr.strip()}")
    return binary


def run(name: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """`go …` in a copy of directory `name`.

    An import path that ends in /v3 means a directory without it only to sources that lie in a
    GOPATH and have a go.mod.
    """
    own = DIRECTORY / "go"
    sources = own / "src" / name
    shutil.rmtree(sources, ignore_errors=True)
    shutil.copytree(HERE / name, sources)
    environ = {"GO111MODULE": "off", "GOPATH": f"{own}:{_SOURCES}", "CGO_ENABLED": "0"}
    return subprocess.run(
        ["go", *arguments],
        cwd=sources,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE_S,
    )


@functools.cache
def versions() -> str:
    """Of the Debian packages, for the report."""
    names = [*PACKAGES.split(), "golang-github-pion-srtp.v2-dev"]
    shown = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *names],
        capture_output=True,
        text=True,
        check=False,
    )
    return ", ".join(shown.stdout.split("\n")).rstrip(", ")
