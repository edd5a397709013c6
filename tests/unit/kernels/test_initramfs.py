import subprocess
from pathlib import Path

import pytest

from tests.kernels.initramfs import initramfs

MODULES = {"00-fuse.ko": b"fuse", "01-virtiofs.ko": b"virtiofs"}


def init(command: list[str], cwd: str) -> str:
    content = initramfs(b"busybox", MODULES, command, cwd, 60)
    script = content[content.index(b"#!/bin/busybox sh") :]
    return script[: script.index(b"poweroff -f\n")].decode()


def test_has_what_init_needs() -> None:
    content = initramfs(b"busybox", MODULES, ["true"], "/", 60)
    for name in (b"bin/busybox\0", b"init\0", b"modules/00-fuse.ko\0", b"proc\0", b"tree\0"):
        assert name in content


def test_host_is_mounted_read_only() -> None:
    assert "mount -t virtiofs -o ro root /host\n" in init(["true"], "/")


def test_command_survives_the_shells(tmp_path: Path) -> None:
    """Spaces and quotes in a path are not the guest's problem."""
    directory = tmp_path / "a 'b' $c"
    directory.mkdir()
    script = init(["/bin/echo", "it's", "$HOME"], str(directory))
    run = script[script.index("env -i") :].replace("/bin/busybox chroot /tree ", "")
    if not Path("/bin/busybox").exists():
        pytest.skip("needs busybox")
    done = subprocess.run(["sh", "-c", run], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "it's $HOME\n")
