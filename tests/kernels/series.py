"""The kernels of the matrix, and how to find the newest package of each. Pure.

Debian takes old point releases out of its archive, so none is named here.
"""

import re
from dataclasses import dataclass

MIRROR = "http://deb.debian.org"
SUITES = (
    ("debian-security", "bullseye-security"),  # 5.10
    ("debian-security", "bookworm-security"),  # 6.1, 6.12
    ("debian", "trixie-backports"),  # 6.18
)


@dataclass(frozen=True, slots=True)
class Series:
    """`below_floor`: older than the oldest kernel that the relay promises to run on. Such a kernel
    is here to show that the matrix can tell kernels apart."""

    name: str
    below_floor: bool = False

    @property
    def version(self) -> tuple[int, int]:
        major, minor = self.name.split(".")
        return int(major), int(minor)


MATRIX = (Series("5.10", below_floor=True), Series("6.1"), Series("6.12"), Series("6.18"))


@dataclass(frozen=True, slots=True)
class Package:
    """A Debian package with a kernel in it."""

    name: str
    version: str  # Debian's, such as 6.1.192-1

    @property
    def release(self) -> str:
        """Of the kernel: 6.1.192."""
        return self.version.partition("-")[0]


def sources() -> str:
    """The archive's suites as a deb822 file for apt."""
    return "\n".join(
        f"Types: deb\nURIs: {MIRROR}/{archive}\nSuites: {suite}\nComponents: main\n"
        "Architectures: amd64\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        for archive, suite in SUITES
    )


def newest(available: str, series: Series) -> Package | None:
    """The newest cloud kernel of a series in the output of `apt-cache dumpavail`."""
    found = [
        Package(name[1], version[1])
        for stanza in available.split("\n\n")
        if (name := re.search(r"^Package: (linux-image-\S+-cloud-amd64)$", stanza, re.MULTILINE))
        and (version := re.search(rf"^Version: ({re.escape(series.name)}\.\S+)$", stanza, re.M))
        and re.match(r"linux-image-\d+\.\d+\.\d", name[1])  # not a meta package
    ]
    return max(found, key=_age, default=None)


def _age(package: Package) -> tuple[list[int], bool]:
    """What stands behind a tilde was made for an older Debian out of the rest."""
    original, backported, _ = package.version.partition("~")
    return [int(part) for part in re.findall(r"\d+", original)], not backported
