import asyncio
import importlib.metadata
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.unit.transceiver.live import (
    Caller,
    command,
    connected,
    free_port,
    remote,
    run,
    serving,
    until,
)


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


def test_no_call_is_taken_while_work_is_late(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, max_lateness_ms=0.001, capacity=None) as live:
            for _ in range(200):
                ready = (await live.http.get("/readyz")).json()
                if not ready["ready"]:
                    break
                await asyncio.sleep(0.05)
            assert ready["reason"] == "lateness"
            refused = await live.http.post("/v1/calls", json={"offer": "v=0", "vips": [live.vip]})
            assert refused.status_code == 503
            assert refused.headers["Retry-After"] == "1"
            assert refused.json()["error"]["code"] == "lateness"
            status = (await live.http.get("/v1/status")).json()
            assert status.pop("lateness_ms") > 0
            assert status.pop("capacity") > 0  # measured
            version = importlib.metadata.version("ferryline")
            own = {"endpoint": live.vip, "cluster": 7, "backend": "echo", "version": version}
            assert status == {"calls": 0, "draining": False, **own}
            metrics = (await live.http.get("/metrics")).text
            assert 'calls_refused_total{reason="lateness"} 1.0' in metrics

    run(scenario)


def test_sigterm_drains_and_a_second_one_says_close_notify(tmp_path: Path) -> None:
    vip = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(command(tmp_path, vip), stderr=subprocess.PIPE, text=True)

    async def scenario() -> None:
        async with remote(vip) as live, connected(live) as caller:
            os.kill(process.pid, signal.SIGTERM)
            for _ in range(200):
                if (ready := await live.http.get("/readyz")).status_code != 200:
                    break
                await asyncio.sleep(0.05)
            assert ready.json()["reason"] == "draining"
            heard = caller.frames
            await until(lambda: caller.frames > heard + 25, 20)  # the call goes on
            os.kill(process.pid, signal.SIGTERM)  # else it would drain for an hour
            await until(lambda: process.poll() is not None, 20)
            await until(lambda: caller.pc.connectionState == "closed", 20)

    assert "reason=shutdown" in watched(process, scenario)


def test_a_drained_process_ends_with_its_last_call(tmp_path: Path) -> None:
    vip = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(command(tmp_path, vip), stderr=subprocess.PIPE, text=True)

    async def scenario() -> None:
        async with remote(vip) as live, connected(live) as caller:
            assert (await live.http.post("/v1/drain")).status_code == 202
            assert (await live.http.get("/v1/status")).json()["draining"]
            assert process.poll() is None
            assert (await live.http.delete(f"/v1/calls/{caller.call_id}")).status_code == 204
            await until(lambda: process.poll() is not None, 20)

    assert "reason=hangup" in watched(process, scenario)


def test_a_call_that_ends_while_draining_takes_no_other_with_it(tmp_path: Path) -> None:
    vip = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(command(tmp_path, vip), stderr=subprocess.PIPE, text=True)

    async def scenario() -> None:
        async with remote(vip) as live, connected(live) as one, connected(live) as other:
            process.send_signal(signal.SIGTERM)
            assert (await live.http.delete(f"/v1/calls/{one.call_id}")).status_code == 204
            heard = other.frames
            await until(lambda: other.frames > heard + 50, 20)
            assert (await live.show(other.call_id))["state"] == "connected"
            assert process.poll() is None
            assert (await live.http.delete(f"/v1/calls/{other.call_id}")).status_code == 204
            await until(lambda: process.poll() is not None, 20)

    assert watched(process, scenario).count("reason=hangup") == 2


def watched(process: subprocess.Popen[str], scenario: Callable[[], Awaitable[None]]) -> str:
    """The log of `process`, which has to end well within `scenario`."""
    try:
        run(scenario)
        assert process.returncode == 0
    finally:
        process.kill()
        _, log = process.communicate()
    assert "Traceback" not in log
    return log
