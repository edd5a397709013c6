import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.transceiver.live import KEYS, Caller, free_port, run, serving, until
from transceiver.config import TransceiverConfig
from transceiver.server import StartError, Transceiver, check


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
    async def scenario() -> None:
        it = config(tmp_path)
        with socket.socket(socket.AF_INET, kind) as taken:
            taken.bind(it.listen)
            name = "UDP" if kind is socket.SOCK_DGRAM else "TCP"
            with pytest.raises(
                StartError, match=f"{it.listen[1]}': {name}: another process has it"
            ):
                Transceiver(it)

    asyncio.run(scenario())


def test_media_and_control_have_one_number(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as live:
            assert (await live.http.get("/readyz")).json()["ready"]
            metrics = (await live.http.get("/metrics")).text
            assert 'ferryline_transceiver_calls{state="connected"} 0.0' in metrics
            caller = await Caller(live).call()
            await caller.connected()
            metrics = (await live.http.get("/metrics")).text
            assert 'ferryline_transceiver_calls{state="connected"} 1.0' in metrics
            assert 'call_setup_seconds_count{phase="dtls"} 1.0' in metrics
            await caller.close()

    run(scenario)


def test_sigterm_says_close_notify_and_ends_within_a_second(tmp_path: Path) -> None:
    it = config(tmp_path)
    file = tmp_path / "transceiver.toml"
    vip = f"127.0.0.1:{it.listen[1]}"
    file.write_text(
        f'listen = "{vip}"\ninner = "plain"\ncluster = 7\nmint = 1\nkeys_file = "{it.keys_file}"\n'
    )
    command = [sys.executable, "-m", "transceiver", "serve", "--config", str(file)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    async def scenario() -> None:
        async with httpx.AsyncClient(base_url=f"http://{vip}", trust_env=False) as http:
            await _ready(http)
            live: Any = type("Remote", (), {"create": _creator(http, vip)})()
            caller = await Caller(live).call()
            await caller.connected()
            began = time.monotonic()
            os.kill(process.pid, signal.SIGTERM)
            await until(lambda: process.poll() is not None, 3)
            assert time.monotonic() - began < 1
            await until(lambda: caller.pc.connectionState == "closed", 1)
            await caller.close()

    try:
        run(scenario)
        assert process.returncode == 0
    finally:
        process.kill()
        _, log = process.communicate()
    assert "reason=shutdown" in log
    assert "Traceback" not in log


async def _ready(http: httpx.AsyncClient) -> None:
    for _ in range(200):
        try:
            await http.get("/healthz")
        except httpx.ConnectError:
            await asyncio.sleep(0.05)
        else:
            return
    raise AssertionError("the process does not answer")


def _creator(http: httpx.AsyncClient, vip: str) -> Any:
    async def create(self: Any, offer: str, dialect: str) -> dict[str, Any]:
        body = {"offer": offer, "vips": [vip], "dialect": dialect}
        answer: dict[str, Any] = (await http.post("/v1/calls", json=body)).json()
        return answer

    return create
