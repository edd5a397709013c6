import socket
from pathlib import Path

import pytest

from relayctl.config import BPFFS, RUN_DIR
from relayctl.datapath.base import DatapathError
from relayctl.inspect import reader
from relayctl.inspect.pinned import Pinned
from relayctl.inspect.reader import Place
from relayctl.inspect.records import ReadError
from tests.unit.relayctl.inspect.pins import pinned
from tests.unit.relayctl.memory_datapath import MemoryDatapath
from tests.unit.relayctl.test_config import config


def place(root: Path) -> Place:
    return Place("relay-a", root, root / "relay-a.sock", root / "relay-a.lock")


def pin(root: Path) -> None:
    (root / "ferryline/relay-a").mkdir(parents=True)


def opened(instance: str, bpffs: Path) -> Pinned:
    assert instance == "relay-a"
    assert bpffs.is_dir()
    return pinned(MemoryDatapath())


def refused(instance: str, bpffs: Path) -> Pinned:
    raise DatapathError("maps of another version")


def test_place_of_a_configuration() -> None:
    found = Place.of(config(bpffs="/run/bpf", run_dir="/run/x"))
    assert found.pins == Path("/run/bpf/ferryline/relay-a")
    assert found.socket == Path("/run/x/relay-a.sock")
    assert found.lock == Path("/run/x/relay-a.lock")


def test_place_by_name() -> None:
    found = Place.named("relay-b")
    assert (found.bpffs, found.socket) == (BPFFS, RUN_DIR / "relay-b.sock")


def test_a_listening_daemon_answers(tmp_path: Path) -> None:
    pin(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "relay-a.sock"))
        listener.listen()
        found = reader.find(place(tmp_path), refused)
    assert found.source == "daemon"
    found.close()


def test_socket_that_a_dead_daemon_left_means_pins(tmp_path: Path) -> None:
    pin(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "relay-a.sock"))
    assert reader.find(place(tmp_path), opened).source == "pins"


def test_no_daemon_means_pins(tmp_path: Path) -> None:
    pin(tmp_path)
    assert reader.find(place(tmp_path), opened).source == "pins"


def test_neither_daemon_nor_pins(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"no daemon answers at .*relay-a\.sock .*relayctl serve"):
        reader.find(place(tmp_path), opened)


def test_unusable_pins(tmp_path: Path) -> None:
    pin(tmp_path)
    with pytest.raises(ReadError, match="relay-a: maps of another version"):
        reader.find(place(tmp_path), refused)


def test_socket_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "connect", connect)
    with pytest.raises(ReadError, match="Permission denied; run it again with sudo"):
        reader.find(place(tmp_path), opened)


def test_instances_are_those_with_pins_or_a_socket(tmp_path: Path) -> None:
    pin(tmp_path)
    (tmp_path / "relay-b.sock").touch()
    (tmp_path / "relay-a.sock").touch()
    assert reader.instances(tmp_path, tmp_path) == ["relay-a", "relay-b"]
    assert reader.instances(tmp_path / "none", tmp_path / "none") == []


def test_now_is_the_stamp_of_the_monotonic_clock() -> None:
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert reader.now() == pytest.approx(uptime * 1e9 / 2**30, abs=3)
