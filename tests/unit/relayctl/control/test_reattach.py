"""An interface that is deleted and made again, under a program of its own in a namespace."""

import asyncio
import contextlib
import logging
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relayctl.config import RelayConfig
from relayctl.control.kernel_side import KernelSide
from relayctl.control.reattach import keep_attached
from relayctl.datapath import xdp
from relayctl.datapath.spec import Interface
from relayctl.flow import Flow, FlowKey
from tests.lab import namespace
from tests.unit.relayctl.packets import config

NAME = "c-reattach"
BPFFS = Path("/sys/fs/bpf")
KEY, FLOW = FlowKey(("198.51.100.7", 40000), 1), Flow(("10.2.0.2", 5000), 7, 5100)
PATIENCE_S = 20.0


def unavailable() -> str | None:
    if reason := namespace.unavailable():
        return reason
    if not shutil.which("ip"):
        return "there is no iproute2"
    return None if os.path.ismount(BPFFS) else f"{BPFFS} is no bpf file system"


pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))


def ip(command: str) -> None:
    subprocess.run(["ip", "-n", NAME, *command.split()], check=True, capture_output=True)


def make_link() -> None:
    ip("link add out0 type veth peer name peer0")
    ip("link set out0 up")
    ip("link set peer0 up")
    ip("addr add 10.3.0.2/24 dev out0")


@pytest.fixture
def relay() -> Iterator[RelayConfig]:
    with contextlib.suppress(OSError):
        namespace.remove(NAME)
    namespace.create(NAME)
    made = config(instance=NAME, interface=[{"name": "out0", "role": "both"}], trust_l2=True)
    try:
        make_link()
        yield made
    finally:
        namespace.call(NAME, lambda: xdp.unload(NAME))
        namespace.remove(NAME)


async def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.05)


def test_the_program_returns_and_flows_stay(
    relay: RelayConfig, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> tuple[Interface, Interface]:
        kernel = await KernelSide.load(relay, lambda _: True)
        await kernel.nexthops.start()
        kernel.attach()
        kernel.datapath.flows.install(KEY, FLOW)
        tasks = [
            asyncio.create_task(each)
            for each in (kernel.nexthops.run(), keep_attached(relay, kernel))
        ]
        try:
            [before] = kernel.interfaces
            ip("link del out0")
            await until(kernel.nexthops.lost)
            assert kernel.datapath.attached() == []
            await asyncio.sleep(1.5)
            make_link()
            await until(lambda: not kernel.nexthops.lost())
            [after] = kernel.interfaces
            assert kernel.datapath.attached() == [after.carrier]
            assert kernel.datapath.flows.get(KEY) == FLOW
            return before, after
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            kernel.close()

    with caplog.at_level(logging.WARNING):
        before, after = namespace.call(NAME, lambda: asyncio.run(run()))
    assert before.ifindex != after.ifindex
    assert (before.name, before.port) == (after.name, after.port)
    assert caplog.messages == [
        "interface out0 is gone: interface.name = 'out0': there is none; `ip link` lists them",
        "interface out0 was made anew: the program is on it again",
    ]
