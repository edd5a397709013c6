import os
from pathlib import Path

import pytest

from relayctl.control.instance_lock import InstanceLock, LockError


def test_a_second_daemon_is_refused_by_name_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "run" / "relay-t.lock"
    with InstanceLock(path):
        with pytest.raises(
            LockError, match=rf"'relay-t' is already served by process {os.getpid()} "
        ):
            InstanceLock(path).__enter__()
        assert path.read_text() == f"{os.getpid()}\n"
    with InstanceLock(path):
        pass


def test_a_dead_daemon_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "relay-t.lock"
    path.write_text("999999999\n")
    with InstanceLock(path):
        assert path.read_text() == f"{os.getpid()}\n"


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LockError, match=r"run_dir = .*create it, or set another"):
        InstanceLock(tmp_path / "file" / "relay-t.lock").__enter__()
