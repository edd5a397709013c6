"""The nexthop table follows a real kernel: a relay and its two neighbours in namespaces."""

import asyncio
import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from relayctl.control.netlink import Events, Kernel
from relayctl.control.nexthops import Nexthops
from relayctl.datapath.base import Nexthop
from tests.lab import namespace
from tests.unit.relayctl.memory_datapath import MemoryDatapath

PREFIX = "t-slow-"
RELAY, NEAR = f"{PREFIX}relay", f"{PREFIX}near"
SOURCE = "10.9.0.1"
GATEWAY, SPARE = "10.9.0.2", "10.9.0.3"  # both addresses of the one neighbour
MAC, NEW_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
PATIENCE_S = 3.0

pytestmark = pytest.mark.skipif(
    namespace.unavailable() is not None or not shutil.which("ip"),
    reason=f"needs namespaces and iproute2: {namespace.unavailable()}",
)


def ip(name: str, command: str) -> str:
    """What iproute2 prints."""
    line = ["ip", "-n", name, *command.split()]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


def sysctl(name: str, key: str, value: int) -> None:
    path = Path("/proc/sys/net/ipv4") / key
    namespace.call(name, lambda: path.write_text(str(value)))


@pytest.fixture
def pair() -> Iterator[None]:
    for name in (RELAY, NEAR):
        with contextlib.suppress(OSError):
            namespace.remove(name)
        namespace.create(name)
    try:
        ip(RELAY, f"link add out0 type veth peer name near0 netns {NEAR}")
        ip(NEAR, f"link set near0 address {MAC}")
        ip(RELAY, f"addr add {SOURCE}/24 dev out0")
        for address in (GATEWAY, SPARE):
            ip(NEAR, f"addr add {address}/24 dev near0")
        for name, link in ((RELAY, "out0"), (NEAR, "near0")):
            ip(name, f"link set {link} up")
        ip(RELAY, f"route add default via {GATEWAY}")
        yield
    finally:
        for name in (RELAY, NEAR):
            namespace.remove(name)


class Table:
    """The table that a scene watches; entry 1 leads over the gateway."""

    def __init__(self) -> None:
        self.datapath = MemoryDatapath()

    @property
    def entry(self) -> Nexthop:
        return self.datapath.nexthops()[1]

    async def until(self, condition: Callable[[Nexthop], object]) -> float:
        """Seconds until the entry is so."""
        began = time.monotonic()
        while not condition(self.entry):
            assert time.monotonic() - began < PATIENCE_S, f"still {self.entry}"
            await asyncio.sleep(0.005)
        return time.monotonic() - began


def play(scene: Callable[[Table], Awaitable[None]], adopted: Nexthop | None = None) -> None:
    """Run a scene in the relay's namespace, beside a table that is kept current."""

    async def run() -> None:
        table, events, kernel = Table(), Events(), Kernel()
        if adopted:
            table.datapath.write_nexthop(1, adopted)
        ports = {socket.if_nametoindex("out0"): 1}
        nexthops = Nexthops(table.datapath, ports, events, kernel, lambda _: True, lambda _: True)
        await nexthops.start()
        task = asyncio.create_task(nexthops.run())
        if not adopted:
            nexthops.reserved(1, 1, GATEWAY, SOURCE, 1500)
        try:
            await table.until(lambda entry: entry.valid)
            await scene(table)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            events.close()
            kernel.close()

    namespace.call(RELAY, lambda: asyncio.run(run()))


def raw(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


@pytest.mark.usefixtures("pair")
def test_a_neighbour_is_resolved_without_traffic() -> None:
    async def scene(table: Table) -> None:
        assert table.entry.destination_mac == raw(MAC)
        assert table.entry.mtu == 1500

    play(scene)


@pytest.mark.usefixtures("pair")
def test_a_new_mac_address_is_in_the_table_within_its_event() -> None:
    sysctl(NEAR, "conf/near0/arp_notify", 1)

    async def scene(table: Table) -> None:
        ip(NEAR, f"link set near0 address {NEW_MAC}")
        assert await table.until(lambda entry: entry.destination_mac == raw(NEW_MAC)) < 1
        assert table.entry.valid

    play(scene)


@pytest.mark.usefixtures("pair")
def test_a_link_that_goes_down_and_comes_back() -> None:
    async def scene(table: Table) -> None:
        ip(NEAR, "link set near0 down")
        await table.until(lambda entry: not entry.valid)
        ip(NEAR, "link set near0 up")
        await table.until(lambda entry: entry.valid)
        ip(RELAY, "link set out0 down")
        await table.until(lambda entry: not entry.valid)
        ip(RELAY, "link set out0 up")
        ip(RELAY, f"route add default via {GATEWAY}")
        await table.until(lambda entry: entry.valid)

    play(scene)


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize(
    "change", [f"route replace default via {SPARE}", "route del default"], ids=["replaced", "gone"]
)
def test_a_route_that_leaves_its_gateway(change: str) -> None:
    async def scene(table: Table) -> None:
        ip(RELAY, change)
        await table.until(lambda entry: not entry.valid)
        ip(RELAY, f"route replace default via {GATEWAY}")
        await table.until(lambda entry: entry.valid)

    play(scene)


@pytest.mark.usefixtures("pair")
def test_a_flushed_neighbour_stays_in_use_and_is_resolved_again() -> None:
    async def scene(table: Table) -> None:
        for _ in range(3):
            ip(RELAY, "neigh flush dev out0")
            await asyncio.sleep(0.1)
            assert table.entry.valid
        assert f"{GATEWAY} dev out0 lladdr {MAC}" in ip(RELAY, "neigh")

    play(scene)


@pytest.mark.usefixtures("pair")
def test_an_adopted_entry_is_in_use_until_it_is_corrected() -> None:
    async def scene(table: Table) -> None:
        await table.until(lambda entry: entry.destination_mac == raw(MAC))
        assert table.entry.valid

    play(scene, Nexthop(1, GATEWAY, SOURCE, True, 1500, bytes(6), raw(NEW_MAC)))


@pytest.mark.usefixtures("pair")
def test_own_addresses() -> None:
    async def run() -> list[str]:
        kernel = Kernel()
        try:
            return await kernel.addresses()
        finally:
            kernel.close()

    assert namespace.call(RELAY, lambda: asyncio.run(run())) == [SOURCE]
