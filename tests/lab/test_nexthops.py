"""The nexthop table follows a real kernel: a relay and its two neighbours in namespaces."""

import asyncio
import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path

import pytest

from relayctl.control.netlink import Events, Kernel
from relayctl.control.nexthops import Nexthops
from relayctl.datapath.base import Nexthop
from relayctl.routes import Route
from tests.lab import namespace
from tests.unit.relayctl.memory_datapath import MemoryDatapath

PREFIX = "t-slow-"
RELAY, NEAR = f"{PREFIX}relay", f"{PREFIX}near"
OWN, OWN_V6 = "10.9.0.1", "fd09::1"
GATEWAY, SPARE = "10.9.0.2", "10.9.0.3"  # all addresses of the one neighbour
GATEWAY_V6, SPARE_V6 = "fd09::2", "fd09::3"
LINK_LOCAL = "fe80::2"
MAC, NEW_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
PATIENCE_S = 3.0
SILENT_S = 15.0  # until a MAC address that changed without a word is known

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
        ip(RELAY, f"addr add {OWN}/24 dev out0")
        ip(RELAY, f"addr add {OWN_V6}/64 dev out0 nodad")
        for address in (f"{GATEWAY}/24", f"{SPARE}/24"):
            ip(NEAR, f"addr add {address} dev near0")
        for address in (GATEWAY_V6, SPARE_V6, LINK_LOCAL):
            ip(NEAR, f"addr add {address}/64 dev near0 nodad")
        for name, link in ((RELAY, "out0"), (NEAR, "near0")):
            ip(name, f"link set {link} up")
        ip(RELAY, f"route add default via {GATEWAY}")
        ip(RELAY, f"route add default via {GATEWAY_V6}")
        yield
    finally:
        for name in (RELAY, NEAR):
            namespace.remove(name)


class Publisher:
    """To a packet process that does not care."""

    def publish(self, routes: Iterable[Route]) -> bool:
        return True

    def resume(self) -> bool:
        return True

    def forget(self) -> None:
        """It never knew any."""


class Table:
    """The table that a scene watches; entry 1 leads over the gateway."""

    def __init__(self) -> None:
        self.datapath = MemoryDatapath()

    @property
    def entry(self) -> Nexthop:
        return self.datapath.nexthops()[1]

    async def until(
        self, condition: Callable[[Nexthop], object], patience_s: float = PATIENCE_S
    ) -> float:
        """Seconds until the entry is so."""
        began = time.monotonic()
        while not condition(self.entry):
            assert time.monotonic() - began < patience_s, f"still {self.entry}"
            await asyncio.sleep(0.005)
        return time.monotonic() - began


def play(
    scene: Callable[[Table], Awaitable[None]],
    gateway: str = GATEWAY,
    adopted: Nexthop | None = None,
) -> None:
    """Run a scene in the relay's namespace, beside a table that is kept current."""

    async def run() -> None:
        table, events, kernel = Table(), Events(), Kernel()
        if adopted:
            table.datapath.write_nexthop(1, adopted)
        ports = {socket.if_nametoindex("out0"): 1}
        nexthops = Nexthops(table.datapath, ports, events, kernel, Publisher(), lambda _: True)
        await nexthops.start()
        task = asyncio.create_task(nexthops.run())
        if not adopted:
            nexthops.reserved(1, 1, gateway, 1500)
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


BOTH = pytest.mark.parametrize(
    ("gateway", "spare"), [(GATEWAY, SPARE), (GATEWAY_V6, SPARE_V6)], ids=["v4", "v6"]
)


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize("gateway", [GATEWAY, GATEWAY_V6, LINK_LOCAL])
def test_a_neighbour_is_resolved_without_traffic(gateway: str) -> None:
    if gateway == LINK_LOCAL:
        ip(RELAY, f"-6 route replace default via {LINK_LOCAL} dev out0")

    async def scene(table: Table) -> None:
        assert table.entry.destination_mac == raw(MAC)
        assert (table.entry.gateway, table.entry.mtu) == (gateway, 1500)
        ip(RELAY, "link set out0 mtu 1400")
        await table.until(lambda entry: entry.mtu == 1400)

    play(scene, gateway)


@pytest.mark.usefixtures("pair")
@BOTH
def test_a_mac_address_that_changes_silently_is_noticed(gateway: str, spare: str) -> None:
    async def scene(table: Table) -> None:
        ip(NEAR, f"link set near0 address {NEW_MAC}")
        took = await table.until(lambda entry: entry.destination_mac == raw(NEW_MAC), SILENT_S)
        print(f"{gateway}: a silent MAC change took {took:.1f} s")
        assert table.entry.valid

    play(scene, gateway)


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
@BOTH
def test_a_lost_route_and_its_return(gateway: str, spare: str) -> None:
    family = "-6" if ":" in gateway else "-4"

    async def scene(table: Table) -> None:
        ip(RELAY, f"{family} route del default")
        await table.until(lambda entry: not entry.valid)
        ip(RELAY, f"route add default via {gateway}")
        await table.until(lambda entry: entry.valid)

    play(scene, gateway)


@pytest.mark.usefixtures("pair")
@BOTH
def test_a_replaced_route_leads_its_entry_to_the_new_gateway(gateway: str, spare: str) -> None:
    neighbour = f"{spare} dev out0 lladdr {NEW_MAC}"

    async def scene(table: Table) -> None:
        ip(RELAY, f"neigh replace {neighbour} nud permanent")
        ip(RELAY, f"route replace default via {spare}")
        assert await table.until(lambda entry: entry.destination_mac == raw(NEW_MAC)) < 1
        assert (table.entry.valid, table.entry.gateway) == (True, gateway)
        assert f"{neighbour} PERMANENT" in ip(RELAY, "neigh"), "set by hand, and left alone"
        ip(RELAY, f"route replace default via {gateway}")
        assert await table.until(lambda entry: entry.destination_mac == raw(MAC)) < 1

    play(scene, gateway)


@pytest.mark.usefixtures("pair")
@BOTH
def test_a_dead_one_of_two_gateways_is_replaced(gateway: str, spare: str) -> None:
    dead = "10.9.0.77" if gateway == GATEWAY else "fd09::77"

    async def scene(table: Table) -> None:
        route = f"nexthop via {gateway} dev out0 nexthop via {dead} dev out0"
        ip(RELAY, f"route replace default {route}")
        ip(RELAY, f"neigh replace {dead} dev out0 lladdr {NEW_MAC} nud stale")
        await table.until(lambda entry: entry.destination_mac == raw(NEW_MAC))
        await table.until(lambda entry: entry.destination_mac == raw(MAC), SILENT_S)
        assert (table.entry.gateway, table.entry.valid) == (dead, True)

    async def begin(table: Table) -> None:
        await table.until(lambda entry: entry.valid)
        await scene(table)

    ip(RELAY, f"neigh replace {dead} dev out0 lladdr {NEW_MAC} nud permanent")
    play(begin, dead)


@pytest.mark.usefixtures("pair")
@pytest.mark.parametrize("network", ["10.30.0.0/16", "fd30::/64"])
def test_nexthop_objects(network: str) -> None:
    first, second = (GATEWAY, SPARE) if "." in network else (GATEWAY_V6, SPARE_V6)
    ip(RELAY, f"route del default via {first}")
    ip(RELAY, f"nexthop add id 1 via {first} dev out0")
    ip(RELAY, f"route add {network} nhid 1")

    async def scene(table: Table) -> None:
        ip(RELAY, f"neigh replace {second} dev out0 lladdr {NEW_MAC} nud permanent")
        ip(RELAY, f"nexthop replace id 1 via {second} dev out0")
        assert await table.until(lambda entry: entry.destination_mac == raw(NEW_MAC)) < 1
        ip(RELAY, "nexthop del id 1")
        assert await table.until(lambda entry: not entry.valid) < 1

    play(scene, first)


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

    play(scene, adopted=Nexthop(1, GATEWAY, True, 1500, bytes(6), raw(NEW_MAC)))


@pytest.mark.usefixtures("pair")
def test_own_addresses() -> None:
    async def run() -> list[str]:
        kernel = Kernel()
        try:
            return await kernel.addresses()
        finally:
            kernel.close()

    link_local = ip(RELAY, "-6 -br addr show dev out0 scope link").split()[-1].split("/")[0]
    found = namespace.call(RELAY, lambda: asyncio.run(run()))
    assert set(found) == {OWN, OWN_V6, link_local}
