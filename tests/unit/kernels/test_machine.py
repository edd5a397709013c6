import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kernels import machine
from tests.kernels.machine import Boot, NoClosingLine, closing_line


def test_closing_line_may_end_as_terminals_do(tmp_path: Path) -> None:
    (tmp_path / "closing").write_bytes(b'{"kernel": "6.1"}\r\n')
    assert closing_line(tmp_path / "closing", tmp_path / "console") == {"kernel": "6.1"}


@pytest.mark.parametrize("said", [None, b"", b'{"kernel": "6.1"}', b'{"kernel\n'])
def test_without_a_whole_closing_line_the_guest_has_failed(
    tmp_path: Path, said: bytes | None
) -> None:
    console = tmp_path / "console"
    console.write_text("".join(f"line {number}\n" for number in range(9)))
    if said is not None:
        (tmp_path / "closing").write_bytes(said)
    with pytest.raises(NoClosingLine, match="closing line") as caught:
        closing_line(tmp_path / "closing", console)
    assert str(caught.value).splitlines()[1:] == [f"line {number}" for number in range(4, 9)]


def fake(directory: Path, name: str, body: str) -> str:
    """A program that stands in for another, and says its number in `<name>.pid`."""
    path = directory / name
    number = (
        f"import os, time\nopen({str(directory / name)!r} + '.pid', 'w').write(str(os.getpid()))"
    )
    path.write_text(f"#!{sys.executable}\nimport sys\n{number}\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("emulator", "seconds"),
    [pytest.param("time.sleep(60)", 1, id="hangs"), pytest.param("", 30, id="ends early")],
)
def test_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: str, seconds: int
) -> None:
    share = "open(sys.argv[1].partition('=')[2], 'w').close(); time.sleep(60)"
    monkeypatch.setattr(machine, "_VIRTIOFSD", fake(tmp_path, "share", share))
    monkeypatch.setattr(machine, "_QEMU", fake(tmp_path, "emulator", emulator))
    with pytest.raises(NoClosingLine):
        machine.run(Boot(tmp_path / "vmlinuz", b"", seconds), tmp_path / "logs")
    for name in ("share", "emulator"):
        number = int((tmp_path / f"{name}.pid").read_text())
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


def test_somebody_may_end_them_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share = "open(sys.argv[1].partition('=')[2], 'w').close(); time.sleep(60)"
    monkeypatch.setattr(machine, "_VIRTIOFSD", fake(tmp_path, "share", share))
    monkeypatch.setattr(machine, "_QEMU", fake(tmp_path, "emulator", "time.sleep(60)"))
    boot = Boot(tmp_path / "vmlinuz", b"", seconds=50)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(machine.run, boot, tmp_path / "logs")
        while not (tmp_path / "emulator.pid").exists():
            time.sleep(0.05)
        machine.end_all()
        with pytest.raises(NoClosingLine):
            running.result(timeout=20)


def test_a_share_that_does_not_start_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_VIRTIOFSD", fake(tmp_path, "share", "sys.exit(1)"))
    monkeypatch.setattr(machine, "_GRACE_S", 1)
    with pytest.raises(NoClosingLine, match="virtiofsd"):
        machine.run(Boot(tmp_path / "vmlinuz", b"", seconds=5), tmp_path / "logs")
