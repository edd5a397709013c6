"""The cache and the unpacking; Debian's archive is played by functions of ours."""

import lzma
import os
import subprocess
from pathlib import Path

import pytest

from tests.kernels.archive import Archive
from tests.kernels.install import Unavailable
from tests.kernels.series import Package, Series

SERIES = Series("6.1")
OLD = Package("linux-image-6.1.0-55-cloud-amd64", "6.1.192-1")
NEW = Package("linux-image-6.1.0-57-cloud-amd64", "6.1.192-3")


class Debian:
    """What the archive has now, and what it was asked."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.newest: Package | None = OLD  # None: cannot be reached
        self.asked: list[str] = []
        self._directory = directory
        monkeypatch.setattr(Archive, "_apt", self._answer)

    def _answer(
        self, program: str, *arguments: str, timeout: float, cwd: Path | None = None
    ) -> bytes:
        if self.newest is None:
            raise Unavailable("no network")
        self.asked.append(arguments[-1])
        if cwd:
            self._deb(cwd)
        return f"Package: {self.newest.name}\nVersion: {self.newest.version}\n".encode()

    def _deb(self, into: Path) -> None:
        """A package with a kernel, a plain module and a compressed one that the other needs."""
        root = self._directory / "root"
        for path, content in {
            "DEBIAN/control": b"Package: k\nVersion: 1\nArchitecture: amd64\n"
            b"Maintainer: n <n@example.org>\nDescription: k\n",
            "boot/vmlinuz-6.1.0": b"kernel",
            "lib/modules/6.1.0/8021q.ko": b"vlan\0depends=garp\0",
            "lib/modules/6.1.0/garp.ko.xz": lzma.compress(b"garp\0depends=\0"),
            "lib/modules/6.1.0/other.ko": b"other",
        }.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        command = ["dpkg-deb", "-b", "--root-owner-group", str(root), str(into / "k.deb")]
        subprocess.run(command, check=True, capture_output=True, timeout=30)


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Debian:
    return Debian(tmp_path, monkeypatch)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "cache")


def test_unpacks_kernel_and_modules_in_their_order(debian: Debian, archive: Archive) -> None:
    (image,) = archive.fetch([SERIES])
    assert image.package == OLD
    assert image.vmlinuz.read_bytes() == b"kernel"
    found = [(path.name, path.read_bytes()) for path in image.modules]
    assert found == [
        ("00-garp.ko", b"garp\0depends=\0"),
        ("01-8021q.ko", b"vlan\0depends=garp\0"),
    ]
    assert not list(image.vmlinuz.parent.parent.glob("*.partial"))


def test_a_second_run_needs_no_network(debian: Debian, archive: Archive) -> None:
    first = archive.fetch([SERIES])
    debian.newest = None
    assert archive.fetch([SERIES]) == first


def test_refresh_looks_for_a_newer_one(debian: Debian, archive: Archive) -> None:
    archive.fetch([SERIES])
    debian.newest = NEW
    assert archive.fetch([SERIES])[0].package == OLD
    assert archive.fetch([SERIES], refresh=True)[0].package == NEW
    debian.newest = None
    with pytest.raises(Unavailable, match="no network"):
        archive.fetch([SERIES], refresh=True)


def test_an_old_answer_is_asked_for_again_where_that_works(
    debian: Debian, archive: Archive, tmp_path: Path
) -> None:
    archive.fetch([SERIES])
    os.utime(tmp_path / "cache" / "newest.json", (0, 0))
    debian.newest = None
    assert archive.fetch([SERIES])[0].package == OLD
    debian.newest = NEW
    assert archive.fetch([SERIES])[0].package == NEW


def test_a_series_that_is_not_there(debian: Debian, archive: Archive) -> None:
    with pytest.raises(Unavailable, match=r"no cloud kernel 6\.2"):
        archive.fetch([Series("6.2")])
