"""Kernels from Debian's archive, cached: build/kernels/cache/<version>/{vmlinuz,modules/*}.

apt works in a root of its own, so this host's package lists and sources stay as they are. The
archive is asked when a kernel is missing or what it said is older than a week; a second run needs
no network.
"""

import io
import json
import lzma
import shutil
import subprocess
import tarfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.kernels import modules
from tests.kernels.install import Unavailable
from tests.kernels.series import Package, Series, newest, sources

_XZ = bytes.fromhex("fd377a585a00")  # how a file of xz begins
_FRESH_S = 7 * 86400.0
_UPDATE_S, _DOWNLOAD_S, _UNPACK_S = 120.0, 300.0, 120.0


@dataclass(frozen=True, slots=True)
class Image:
    """A kernel on disk. Modules are in the order in which they have to be loaded."""

    series: Series
    package: Package
    vmlinuz: Path
    modules: tuple[Path, ...]


class Archive:
    """`root` keeps apt's lists and the unpacked kernels."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._index = root / "newest.json"

    def fetch(self, wanted: Sequence[Series], *, refresh: bool = False) -> list[Image]:
        """The newest kernel of each series. Raises `Unavailable`.

        If the archive cannot be asked, kernels of an earlier answer will do.
        """
        known = self._known()
        incomplete = any(series.name not in known for series in wanted)
        if refresh or incomplete or self._is_stale():
            try:
                known |= self._ask(wanted)
            except Unavailable:
                if refresh or incomplete:
                    raise
            else:
                self._remember(known)
        return [self._image(series, known[series.name]) for series in wanted]

    def _known(self) -> dict[str, Package]:
        try:
            entries = json.loads(self._index.read_text())
        except FileNotFoundError:
            return {}
        return {name: Package(**fields) for name, fields in entries.items()}

    def _is_stale(self) -> bool:
        return time.time() - self._index.stat().st_mtime > _FRESH_S

    def _remember(self, known: dict[str, Package]) -> None:
        entries = {name: asdict(package) for name, package in known.items()}
        self._index.write_text(json.dumps(entries, indent=2) + "\n")

    def _ask(self, wanted: Sequence[Series]) -> dict[str, Package]:
        parts = self._root / "apt" / "sources"
        parts.mkdir(parents=True, exist_ok=True)
        (parts / "kernels.sources").write_text(sources())
        self._apt("apt-get", "-qq", "update", timeout=_UPDATE_S)
        available = self._apt("apt-cache", "dumpavail", timeout=_UPDATE_S).decode()
        found = {}
        for series in wanted:
            package = newest(available, series)
            if package is None:
                raise Unavailable(f"Debian's archive has no cloud kernel {series.name}")
            found[series.name] = package
        return found

    def _image(self, series: Series, package: Package) -> Image:
        directory = self._root / package.version
        if not directory.exists():
            self._unpack(package, directory)
        found = tuple(sorted((directory / "modules").iterdir()))
        return Image(series, package, directory / "vmlinuz", found)

    def _unpack(self, package: Package, directory: Path) -> None:
        """Whole or not at all: a run may be stopped at any time."""
        partial = directory.with_name(f"{directory.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        (partial / "modules").mkdir(parents=True)
        name = f"{package.name}={package.version}"
        self._apt("apt-get", "-qq", "download", name, cwd=partial, timeout=_DOWNLOAD_S)
        (deb,) = partial.glob("*.deb")
        vmlinuz, found = _contents(deb)
        (partial / "vmlinuz").write_bytes(vmlinuz)
        for number, (module, content) in enumerate(found):
            (partial / "modules" / f"{number:02}-{module}.ko").write_bytes(content)
        deb.unlink()
        partial.rename(directory)

    def _apt(self, program: str, *arguments: str, timeout: float, cwd: Path | None = None) -> bytes:
        root = self._root.absolute() / "apt"
        options = {
            "Dir::State": root / "state",
            "Dir::State::status": "/dev/null",
            "Dir::Cache": root / "cache",
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": root / "sources",
            "APT::Sandbox::User": "root",
            "APT::Architecture": "amd64",
            "APT::Update::Post-Invoke-Success": "",
            "Acquire::Retries": 2,
        }
        for directory in ("state/lists/partial", "cache/archives/partial"):
            (root / directory).mkdir(parents=True, exist_ok=True)
        flags = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        return _run([program, *flags, *arguments], timeout, cwd)


def _run(command: Sequence[str], timeout: float, cwd: Path | None = None) -> bytes:
    what = f"{command[0]} {command[-1]}"
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, timeout=timeout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{what}: {error}") from error
    if done.returncode:
        said = (done.stderr.decode(errors="replace").strip().splitlines() or ["nothing"])[-1]
        raise Unavailable(f"{what} failed and said: {said}")
    return done.stdout


def _contents(deb: Path) -> tuple[bytes, list[tuple[str, bytes]]]:
    """The kernel and the modules that a guest loads, unpacked and in their order."""
    kernel, packed = b"", _Packed()
    tar = _run(["dpkg-deb", "--fsys-tarfile", str(deb)], _UNPACK_S)
    with tarfile.open(fileobj=io.BytesIO(tar)) as members:
        for member in filter(tarfile.TarInfo.isfile, members):
            read = members.extractfile(member)
            if read and member.name.startswith("./boot/vmlinuz-"):
                kernel = read.read()
            elif read and (module := modules.name_of(member.name)):
                packed[module] = read.read()
    if not kernel:
        raise Unavailable(f"{deb.name} has no ./boot/vmlinuz-*")
    order = modules.loading_order(modules.WANTED, packed)
    return kernel, [(name, packed[name]) for name in order]


class _Packed(dict[str, bytes]):
    """Modules by name, some of them compressed: only the few that are looked at are unpacked."""

    def __getitem__(self, name: str) -> bytes:
        content = super().__getitem__(name)
        return lzma.decompress(content) if content.startswith(_XZ) else content
