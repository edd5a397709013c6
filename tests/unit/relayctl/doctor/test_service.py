import fcntl
import os
from pathlib import Path

import pytest

from relayctl.doctor import service
from relayctl.doctor.result import Status
from relayctl.wire.route_token import Key, render_key
from tests.unit.relayctl.doctor.test_kernel import judged, write
from tests.unit.relayctl.test_config import config

SECRET = bytes(range(32))


def keys(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_keys_file(tmp_path: Path) -> None:
    path = keys(tmp_path / "keys", f"{render_key(Key(3, SECRET))}\n{render_key(Key(1, SECRET))}\n")
    judged(service.keys_file(path), Status.OK, "key ids 1, 3")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_keys_open_to_others(tmp_path: Path, mode: int) -> None:
    path = keys(tmp_path / "keys", render_key(Key(1, SECRET)), mode)
    judged(service.keys_file(path), Status.WARN, f"mode {mode:04o}", f"chmod 0600 {path}")


def test_no_keys_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    judged(service.keys_file(path), Status.FAIL, str(path), f"keygen --id 1 --out {path}")


@pytest.mark.parametrize("text", ["", "1 abc", "99 " + "0" * 64])
def test_unreadable_keys(tmp_path: Path, text: str) -> None:
    judged(service.keys_file(keys(tmp_path / "keys", text)), Status.FAIL, "keys: ", "keygen")


def test_binary_keys_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(b"\xff\xfe")
    judged(service.keys_file(path), Status.FAIL, str(path))


def test_no_result_shows_a_secret(tmp_path: Path) -> None:
    text = f"{render_key(Key(1, SECRET))}\n{render_key(Key(1, SECRET))}\n"
    found = service.keys_file(keys(tmp_path / "keys", text))
    assert SECRET.hex() not in found.detail + found.mend


def test_run_dir(tmp_path: Path) -> None:
    judged(service.run_dir(tmp_path, lambda _: True), Status.OK, str(tmp_path))
    judged(service.run_dir(tmp_path, lambda _: False), Status.FAIL, "read-only", "install -d")


def test_run_dir_will_be_made(tmp_path: Path) -> None:
    missing = tmp_path / "run/ferryline"
    judged(service.run_dir(missing, lambda path: path == tmp_path), Status.OK, "will be made")
    judged(service.run_dir(missing, lambda _: False), Status.FAIL, str(tmp_path), "install -d")


def test_run_dir_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_text("")
    judged(service.run_dir(path), Status.FAIL, "no directory")


LOCKS = """\
1: POSIX  ADVISORY  WRITE 77 {identity} 0 EOF
2: FLOCK  ADVISORY  WRITE {pid} {identity} 0 EOF
2: -> FLOCK  ADVISORY  WRITE 99 {identity} 0 EOF
3: FLOCK  ADVISORY  WRITE 88 00:00:1 0 EOF
"""


def identity(path: Path) -> str:
    info = path.stat()
    return f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino}"


def test_second_daemon(tmp_path: Path) -> None:
    found = config(run_dir=str(tmp_path))
    found.lock_path.write_text("")
    write(tmp_path, "locks", LOCKS.format(identity=identity(found.lock_path), pid=4711))
    judged(service.second_daemon(found, tmp_path), Status.OK, "process 4711")


def test_lock_of_another_file_does_not_count(tmp_path: Path) -> None:
    found = config(run_dir=str(tmp_path))
    found.lock_path.write_text("")
    write(tmp_path, "locks", LOCKS.format(identity="00:1b:7", pid=4711))
    judged(service.second_daemon(found, tmp_path), Status.OK, "not running")


def test_no_lock_file(tmp_path: Path) -> None:
    judged(service.second_daemon(config(run_dir=str(tmp_path)), tmp_path), Status.OK, "not running")


def test_lock_holder_agrees_with_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as file:
        assert service.lock_holder(path) is None
        fcntl.flock(file, fcntl.LOCK_EX)
        assert service.lock_holder(path) == os.getpid()
    assert service.lock_holder(path) is None
