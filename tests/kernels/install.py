"""Debian packages of the kernel matrix, installed where they are missing (as root)."""

import os
import subprocess
from pathlib import Path

# qemu-system-common comes with the emulator and has virtiofsd.
PACKAGES = {
    "qemu-system-x86": Path("/usr/bin/qemu-system-x86_64"),
    "busybox-static": Path("/bin/busybox"),
}
_INSTALL_S = 300.0


class Unavailable(Exception):
    """The matrix cannot run on this machine; the message says why."""


def install() -> list[str]:
    """Install what is missing and name it. Raises `Unavailable`."""
    missing = [name for name, file in PACKAGES.items() if not _has(name, file)]
    if not missing:
        return []
    apt = ("apt-get", "-qq", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=60")
    mend = f"as root: apt-get install --no-install-recommends {' '.join(missing)}"
    if os.geteuid() != 0:
        raise Unavailable(f"missing Debian packages: {', '.join(missing)}; {mend}")
    for command in ((*apt, "update"), (*apt, "install", *missing)):
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                capture_output=True,
                text=True,
                timeout=_INSTALL_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"cannot install {', '.join(missing)}: {error}; {mend}") from error
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            raise Unavailable(f"{' '.join(command)} said: {said}; {mend}")
    return missing


def _has(name: str, file: Path) -> bool:
    """`busybox` and `busybox-static` own the same file, so that it exists is not enough."""
    query = ("dpkg-query", "-W", "-f", "${db:Status-Status}", name)
    found = subprocess.run(query, capture_output=True, text=True, timeout=30)
    return found.stdout == "installed" and file.exists()
