"""What the doctor says of interfaces, against what becomes of frames on them."""

import select
import shutil
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator

import pytest

from relayctl.doctor import host_reader, links
from relayctl.doctor.host import Host, Link
from relayctl.doctor.result import Result, Status
from relayctl.reason import Reason
from tests.kernel.packets import DTLS, UDP, checksum, frame, packed, take_apart
from tests.kernel.rig import CLIENT, INNER_SIDE, OUTER, VIP, Rig, ifindex
from tests.kernel.test_wire import Far
from tests.unit.relayctl.test_config import config

_SOL_PACKET, _ADD_MEMBERSHIP, _VNET_HEADER = 263, 1, 15
_PROMISCUOUS = 1  # PACKET_MR_PROMISC
_NEEDS_CHECKSUM = struct.pack("=BBHHHH", 1, 0, 0, 0, 34, 6)
"""struct virtio_net_hdr: the sum of UDP behind plain IPv4 is still to be computed."""
WAIT_S = {Status.OK: 10.0, Status.FAIL: 0.3}  # for what comes, and for what does not
OTHER_MAC = bytes.fromhex("0200000000ee")


@pytest.fixture
def ends(relay: Rig) -> Iterator[tuple[Far, Far]]:
    """Client side and transceiver side."""
    if not shutil.which("ethtool"):
        pytest.skip("needs ethtool")
    relay.install()
    ends = Far(OUTER), Far(INNER_SIDE)
    offload(INNER_SIDE, "gro", "on")
    yield ends
    for end in ends:
        end.close()
    offload(OUTER, "tx", "on")


def offload(interface: str, feature: str, value: str) -> None:
    """At the far end of one of the relay's interfaces."""
    command = ["ethtool", "-K", f"{interface}-", feature, value]
    subprocess.run(command, check=True, capture_output=True)


def told(check: Callable[[Link, Host], Result], interface: str) -> Status:
    host = host_reader.read(config())
    link = host.link(interface)
    assert link
    return check(link, host).status


def promiscuous(link: Link, _: Host) -> Result:
    return links.promiscuous(link)


@pytest.mark.parametrize(("gro", "status"), [("on", Status.OK), ("off", Status.FAIL)])
def test_redirected_frames_vanish_where_the_other_end_has_no_gro(
    relay: Rig, ends: tuple[Far, Far], gro: str, status: Status
) -> None:
    client_side, transceiver = ends
    offload(INNER_SIDE, "gro", gro)
    assert told(links.veth_peer, INNER_SIDE) is status
    with relay.counted() as counts:
        client_side.send(frame(CLIENT, VIP, DTLS))
        arrived = select.select([transceiver], [], [], WAIT_S[status])[0]
    assert bool(arrived) is (status is Status.OK)
    assert counts == {Reason.FORWARD: 1}  # the program is not told


@pytest.mark.parametrize(("tx", "status"), [("off", Status.OK), ("on", Status.WARN)])
def test_checksums_of_local_senders_are_missing_where_the_other_end_offloads_them(
    ends: tuple[Far, Far], tx: str, status: Status
) -> None:
    _, transceiver = ends
    offload(OUTER, "tx", tx)
    assert told(links.veth_checksums, OUTER) is status
    payload = DTLS
    pseudo_header = packed(CLIENT[0]) + packed(VIP[0]) + struct.pack("!II", 8 + len(payload), UDP)
    unfinished = frame(CLIENT, VIP, payload, sum=checksum(pseudo_header) ^ 0xFFFF)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.setsockopt(_SOL_PACKET, _VNET_HEADER, 1)
        sender.bind((f"{OUTER}-", 0))
        sender.send(_NEEDS_CHECKSUM + unfinished)
    arrived = transceiver.receive()
    if status is Status.OK:
        assert take_apart(arrived).payload.endswith(payload)
    else:
        with pytest.raises(AssertionError, match="UDP checksum"):
            take_apart(arrived)


def test_frames_for_other_machines_are_forwarded_where_they_are_taken(
    ends: tuple[Far, Far],
) -> None:
    """A veth takes every frame, an adapter when it is promiscuous."""
    client_side, transceiver = ends
    assert told(promiscuous, OUTER) is Status.OK
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as capture:
        membership = struct.pack("=iHH8x", ifindex(OUTER), _PROMISCUOUS, 0)
        capture.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, membership)
        assert told(promiscuous, OUTER) is Status.WARN
        client_side.send(frame(CLIENT, VIP, DTLS, macs=(OTHER_MAC, OTHER_MAC)))
        assert take_apart(transceiver.receive()).payload.endswith(DTLS)
    assert told(promiscuous, OUTER) is Status.OK
