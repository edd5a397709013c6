"""`make up` and `make down`: what a person starts, in both forms."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.lab import namespace, up_state
from tests.lab.deployment import unavailable
from tests.lab.node import REPOSITORY
from tests.lab.program import start_time

PORT = 18080
OTHER_HOST = "127.0.0.2"  # a second address that every machine has


@pytest.fixture(autouse=True)
def nothing_up() -> Iterator[None]:
    if up_state.PATH.exists():
        pytest.skip(f"{up_state.PATH} says that something is up: make down")
    yield
    run("tests.lab.down")


def run(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def talk(url: str, host: str, *options: str) -> dict[str, object]:
    calls = f"{url}/v1/realtime/calls"
    report = run("tests.clients.lean", "--url", calls, "--host", host, "--seconds", "1", *options)
    call: dict[str, object] = json.loads(report)["calls"][0]
    return call


@pytest.mark.parametrize(
    ("options", "place", "host", "datapath"),
    [
        pytest.param([], "xdp", "10.9.0.2", "xdp", id="lab"),
        pytest.param(["--rootless"], "loopback", "127.0.0.1", "socket", id="rootless"),
    ],
)
def test_up_talk_up_again_down(options: list[str], place: str, host: str, datapath: str) -> None:
    reason = unavailable("xdp" if place == "xdp" else "loopback")
    if reason is not None:
        pytest.skip(reason)
    options = [*options, "--backend", "echo"]  # what the lean client counts comes back
    told = run("tests.lab.up", "--port", str(PORT), *options)
    assert f"http://localhost:{PORT}" in told
    assert f"datapath: {datapath}" in told
    pids = pids_up()

    assert talk(f"http://localhost:{PORT}", host)["lost"] == {
        "down": 0,
        "up": 0,
        "up_reported": 0,
    }
    assert "already up" in run("tests.lab.up", "--port", str(PORT), *options)
    assert pids_up() == pids

    assert "3 programs ended" in run("tests.lab.down")
    assert not any(start_time(pid) for pid in pids)
    assert not namespace.exists("fl-client")
    assert "nothing was up" in run("tests.lab.down")


def test_other_devices_talk_over_https() -> None:
    options = ("--port", str(PORT), "--rootless", "--host", OTHER_HOST, "--backend", "echo")
    assert f"https://{OTHER_HOST}:8443" in run("tests.lab.up", *options)
    call = talk(f"https://{OTHER_HOST}:8443", OTHER_HOST, "--insecure")
    assert call["remote"] == f"{OTHER_HOST}:3478"
    assert call["lost"] == {"down": 0, "up": 0, "up_reported": 0}


def test_what_ended_is_started_anew() -> None:
    assert "when you pause" in run("tests.lab.up", "--port", str(PORT), "--rootless")
    pids = pids_up()
    os.kill(pids[-1], 9)
    told = run("tests.lab.up", "--port", str(PORT), "--rootless")
    assert "already up" not in told
    assert not set(pids) & set(pids_up())


def pids_up() -> list[int]:
    state = up_state.load()
    assert state is not None
    assert state.ended() == []
    return [pid for pid, _ in state.programs.values()]
