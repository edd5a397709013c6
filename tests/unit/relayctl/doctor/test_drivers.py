import dataclasses
from typing import Any

import pytest

from relayctl.doctor import drivers
from relayctl.doctor.host import Channels, Link
from relayctl.doctor.result import Status
from tests.unit.relayctl.doctor.test_kernel import judged
from tests.unit.relayctl.test_config import config

NIC = Link(index=4, name="eth0", queues=4)


def nic(driver: str, used: int, most: int) -> Link:
    return dataclasses.replace(NIC, driver=driver, channels=Channels(used, most))


@pytest.mark.parametrize(
    ("link", "status", "mend"),
    [
        (nic("ena", 8, 8), Status.FAIL, "ethtool -L eth0 combined 4"),
        (nic("ena", 4, 8), Status.OK, ""),
        (nic("gve", 3, 4), Status.FAIL, "ethtool -L eth0 combined 2"),
        (nic("ena", 1, 1), Status.FAIL, "xdp_mode = 'generic'"),
        (nic("virtio_net", 4, 4), Status.WARN, "ethtool -L eth0 combined 2"),
        (nic("virtio_net", 1, 2), Status.WARN, "give the machine 3 queues"),
        (nic("virtio_net", 2, 4), Status.OK, ""),
        (nic("ixgbe", 8, 8), Status.OK, ""),
        (NIC, Status.SKIP, ""),
    ],
)
def test_channels(link: Link, status: Status, mend: str) -> None:
    judged(drivers.channels(link, config(), cpus=2), status, "", mend)


def test_generic_mode_needs_no_channels() -> None:
    found = drivers.channels(nic("ena", 8, 8), config(xdp_mode="generic"), cpus=2)
    judged(found, Status.SKIP, "generic")


@pytest.mark.parametrize(
    ("driver", "flags", "status"),
    [
        ("gve", {}, Status.WARN),
        ("gve", {"xdp_mode": "generic"}, Status.SKIP),
        ("gve", {"inner": "transparent"}, Status.SKIP),
        ("ixgbe", {}, Status.OK),
        ("", {}, Status.OK),
    ],
)
def test_headroom(driver: str, flags: dict[str, Any], status: Status) -> None:
    judged(drivers.headroom(nic(driver, 1, 2), config(**flags)), status, "")


def test_mend_of_headroom() -> None:
    found = drivers.headroom(nic("gve", 1, 2), config())
    judged(found, Status.WARN, "2 bytes", "inner = 'transparent', or xdp_mode = 'generic'")


def test_queues() -> None:
    judged(drivers.queues(NIC, cpus=4), Status.OK, "4 for sending, 4 CPUs")
    judged(drivers.queues(NIC, cpus=8), Status.WARN, "8 CPUs", "ethtool -L eth0 combined 8")
    judged(drivers.queues(nic("ixgbe", 2, 8), cpus=4), Status.WARN, "2 for sending", "combined 4")
    judged(drivers.queues(nic("virtio_net", 1, 1), cpus=4), Status.WARN, "1 for", "more queues")
    judged(drivers.queues(dataclasses.replace(NIC, kind="veth"), cpus=8), Status.SKIP, "veth")
