import socket
from pathlib import Path
from typing import Any

import pytest

from tests.unit.transceiver.live import KEYS, free_port, free_ports
from transceiver.config import TransceiverConfig
from transceiver.host import StartError, check, sockets, try_ports


def config(tmp_path: Path, **changes: Any) -> TransceiverConfig:
    keys = tmp_path / "route.keys"
    if not keys.exists():
        keys.write_text(KEYS)
    values: dict[str, Any] = {
        "listen": ("127.0.0.1", free_port()),
        "inner": "plain",
        "cluster": 7,
        "keys_file": keys,
        "mint": 1,
    }
    return TransceiverConfig(**(values | changes))


def test_check_names_the_fault(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"mint = 2: the key file has 1"):
        check(config(tmp_path, mint=2))
    with pytest.raises(StartError, match="No such file"):
        check(config(tmp_path, keys_file=tmp_path / "none"))
    (tmp_path / "bad").write_text("1 xyz")
    with pytest.raises(StartError, match="64 hex"):
        check(config(tmp_path, keys_file=tmp_path / "bad"))
    with pytest.raises(StartError, match="cluster_prefix"):
        check(config(tmp_path, listen=("::1", 5000)))


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_a_port_in_use_is_named(tmp_path: Path, kind: socket.SocketKind) -> None:
    it = config(tmp_path)
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(it.listen)
        name = "UDP" if kind is socket.SOCK_DGRAM else "TCP"
        with pytest.raises(StartError, match=f"{it.listen[1]}': {name}: another process has it"):
            sockets(it.listen)
    for each in sockets(it.listen):  # nothing was kept
        each.close()


def test_the_ports_of_all_workers_are_tried_and_let_go(tmp_path: Path) -> None:
    base = free_ports(3)
    it = config(tmp_path, listen=("127.0.0.1", base), workers=3)
    try_ports(it)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", base + 2))
        with pytest.raises(StartError, match=f"{base + 2}': UDP: another process has it"):
            try_ports(it)
    try_ports(it)
