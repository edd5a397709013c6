"""Boot a kernel in software emulation and bring back what its guest says.

A guest talks on two serial ports: everything for people goes to `console.log`, and the last thing
it does is one line of JSON on the other. A guest that does not get there has failed.
"""

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kernels.initramfs import TAG

_QEMU = "/usr/bin/qemu-system-x86_64"
_VIRTIOFSD = "/usr/lib/qemu/virtiofsd"
_MEMORY = "1536M"
_SHIFT = 1  # an instruction takes 2 ns of the guest's time
_GRACE_S = 10
_LINES = 5

_processes: set["subprocess.Popen[bytes]"] = set()


class NoClosingLine(Exception):
    """The guest did not come to its end; the message has the console's last lines."""


@dataclass(frozen=True, slots=True)
class Boot:
    vmlinuz: Path
    initramfs: bytes
    seconds: int  # at most, from power on to power off


def run(boot: Boot, directory: Path) -> dict[str, Any]:
    """Boot, wait for the end and return the closing line. Raises `NoClosingLine`.

    `directory` gets the logs. Nothing is left running, whatever happens: `timeout` ends what this
    process cannot.
    """
    directory.mkdir(parents=True, exist_ok=True)
    console, closing = directory / "console.log", directory / "closing.json"
    closing.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="ferryline-kernels-") as scratch:
        socket, image = Path(scratch) / "virtiofs", Path(scratch) / "initramfs"
        image.write_bytes(boot.initramfs)
        with _running(_share(socket), directory / "virtiofsd.log", boot.seconds):
            _await(socket)
            ports = ("-serial", f"file:{console}", "-serial", f"file:{closing}")
            command = [*_emulate(boot.vmlinuz, image, socket), *ports]
            with _running(command, directory / "qemu.log", boot.seconds) as emulator:
                emulator.wait(boot.seconds + 2 * _GRACE_S)
    return closing_line(closing, console)


def end_all() -> None:
    """Let every `run` of other threads come to its end now."""
    for process in list(_processes):
        process.terminate()


def _share(socket: Path) -> list[str]:
    """The host's root, for one guest; it ends when the guest does."""
    options = ("source=/", "sandbox=chroot", "cache=always")
    flags = [part for option in options for part in ("-o", option)]
    # Without CAP_SYS_RESOURCE it may not raise its limit of open files, and would not start.
    return [_VIRTIOFSD, f"--socket-path={socket}", "--rlimit-nofile=0", *flags]


def _emulate(vmlinuz: Path, initramfs: Path, socket: Path) -> list[str]:
    """Never with /dev/kvm: where it is there, it may yet be unable to run a stock kernel.

    The guest's clock counts its instructions: how busy this machine is, its tests do not notice.
    """
    # fmt: off
    return [
        _QEMU, "-M", "q35", "-accel", "tcg", "-icount", f"shift={_SHIFT}", "-cpu", "max",
        "-smp", "1", "-m", _MEMORY,
        "-nodefaults", "-display", "none", "-no-reboot",
        "-object", f"memory-backend-memfd,id=memory,size={_MEMORY},share=on",
        "-numa", "node,memdev=memory",
        "-chardev", f"socket,id=share,path={socket}",
        "-device", f"vhost-user-fs-pci,chardev=share,tag={TAG}",
        "-kernel", str(vmlinuz), "-initrd", str(initramfs),
        "-append", "console=ttyS0 quiet panic=-1 no_timer_check nowatchdog",
    ]
    # fmt: on


@contextlib.contextmanager
def _running(
    command: Sequence[str], log: Path, seconds: int
) -> Iterator["subprocess.Popen[bytes]"]:
    guarded = ["timeout", f"--kill-after={_GRACE_S}", str(seconds), *command]
    with log.open("wb") as out:
        process = subprocess.Popen(
            guarded, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )
        _processes.add(process)
        try:
            yield process
        finally:
            _processes.discard(process)
            process.terminate()  # `timeout` passes it on
            try:
                process.wait(2 * _GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await(socket: Path) -> None:
    deadline = time.monotonic() + _GRACE_S
    while not socket.exists():
        if time.monotonic() > deadline:
            raise NoClosingLine("virtiofsd does not start; its log is in virtiofsd.log")
        time.sleep(0.02)


def closing_line(closing: Path, console: Path) -> dict[str, Any]:
    """What a guest said last. Raises `NoClosingLine`."""
    line = closing.read_text(errors="replace") if closing.exists() else ""
    try:
        if line.endswith("\n"):
            content: dict[str, Any] = json.loads(line)
            return content
        reason = "no closing line"
    except ValueError as error:
        reason = f"the closing line is garbled ({error})"
    said = console.read_text(errors="replace").splitlines() if console.exists() else []
    raise NoClosingLine("\n".join([f"{reason}; the console ends so:", *said[-_LINES:]]))
