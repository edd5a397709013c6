"""`transceiver serve --workers 3` on loopback: real processes, real calls."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.unit.transceiver.live import Remote, command, connected, free_ports, remote, run, until

PATIENCE_S = 40.0  # three interpreters start on a machine that does other things too


class Service:
    """A supervisor with three workers on `vips`."""

    def __init__(self, tmp_path: Path) -> None:
        base = free_ports(3)
        self.vips = [f"127.0.0.1:{base + number}" for number in range(3)]
        argv = command(tmp_path, self.vips[0], "--workers", "3")
        self.log = tmp_path / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(argv, stderr=log)

    def workers(self) -> list[int]:
        """Pids, in the order of their ports."""
        found = {}
        for pid in children(self.process.pid):
            line = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            if "--listen" in line:
                found[line[line.index("--listen") + 1]] = pid
        return [pid for _, pid in sorted(found.items())]

    @contextlib.asynccontextmanager
    async def remotes(self) -> AsyncIterator[list[Remote]]:
        async with contextlib.AsyncExitStack() as stack:
            yield [await stack.enter_async_context(remote(vip)) for vip in self.vips]

    def test(self, scenario: Callable[[], Awaitable[None]]) -> None:
        try:
            run(scenario)
        finally:
            self.process.kill()
            self.process.wait()
        assert "Traceback" not in self.log.read_text()


def children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)


def test_a_killed_worker_comes_back_and_the_others_calls_go_on(service: Service) -> None:
    async def scenario() -> None:
        async with service.remotes() as (first, second, third), connected(first) as caller:
            pids = service.workers()
            os.kill(pids[1], signal.SIGKILL)
            heard = caller.frames
            async with remote(second.vip), connected(second) as other:  # waits for the new one
                assert other.pc.connectionState == "connected"
            assert service.workers()[0] == pids[0]
            assert service.workers()[2] == pids[2]
            assert service.workers()[1] != pids[1]
            await until(lambda: caller.frames > heard + 25, PATIENCE_S)
            assert (await first.show(caller.call_id))["state"] == "connected"
            assert (await third.http.get("/v1/status")).json()["calls"] == 0

    service.test(scenario)
    assert "was killed by signal 9" in service.log.read_text()


def test_sigterm_drains_and_a_second_one_ends(service: Service) -> None:
    async def scenario() -> None:
        async with service.remotes() as (first, _, _), connected(first) as caller:
            pids = service.workers()
            os.kill(service.process.pid, signal.SIGTERM)
            await until(lambda: gone(pids[1]) and gone(pids[2]), PATIENCE_S)
            body = {"offer": "v=0", "vips": [first.vip]}
            refused = await first.http.post("/v1/calls", json=body)
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "draining"
            heard = caller.frames
            await until(lambda: caller.frames > heard + 25, PATIENCE_S)
            os.kill(service.process.pid, signal.SIGTERM)
            await until(lambda: service.process.poll() is not None, PATIENCE_S)
            await until(lambda: caller.pc.connectionState == "closed", PATIENCE_S)
            assert service.process.returncode == 0

    service.test(scenario)


def test_a_rolling_restart_waits_for_each_workers_calls(service: Service) -> None:
    async def scenario() -> None:
        async with (
            service.remotes() as (_, second, third),
            connected(second) as caller,
            connected(third) as other,
        ):
            pids = service.workers()
            os.kill(service.process.pid, signal.SIGHUP)
            await until(lambda: gone(pids[0]), PATIENCE_S)
            for _ in range(400):
                if (await second.http.get("/v1/status")).json()["draining"]:
                    break
                await asyncio.sleep(0.05)
            heard = caller.frames, other.frames
            await until(lambda: caller.frames > heard[0] + 25, PATIENCE_S)
            await until(lambda: other.frames > heard[1] + 25, PATIENCE_S)
            assert (await third.http.get("/readyz")).status_code == 200  # its turn comes later
            await caller.close()
            await until(lambda: gone(pids[1]), PATIENCE_S)
            assert (await third.show(other.call_id))["state"] == "connected"
            await other.close()
            await until(lambda: "all workers are replaced" in service.log.read_text(), PATIENCE_S)
            assert not set(pids) & set(service.workers())

    service.test(scenario)


def test_workers_end_with_a_killed_supervisor(service: Service) -> None:
    async def scenario() -> None:
        async with service.remotes() as (first, _, _), connected(first) as caller:
            pids = service.workers()
            service.process.kill()
            await until(lambda: all(map(gone, pids)), PATIENCE_S)
            await until(lambda: caller.pc.connectionState == "closed", PATIENCE_S)

    service.test(scenario)


def test_a_port_in_use_is_named_before_anything_starts(tmp_path: Path) -> None:
    base = free_ports(3)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", base + 2))
        argv = command(tmp_path, f"127.0.0.1:{base}", "--workers", "3")
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"listen = '127.0.0.1:{base + 2}': UDP: another process has it" in done.stderr
    assert "listening" not in done.stderr
