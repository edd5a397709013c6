"""Real frames through real interfaces: what is redirected comes out at the far end."""

import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.kernel.packets import DTLS, Address, frame, request, spp_header, take_apart
from tests.kernel.rig import (
    CLIENT,
    CLIENT_V6,
    ENDPOINT,
    ENDPOINT_V6,
    INNER,
    INNER_SIDE,
    INNER_V6,
    OUTER,
    SPORT,
    TAGGED,
    TO_CLIENT,
    VIP,
    VIP_V6,
    Rig,
    token,
)

_ALL_PROTOCOLS = 3  # ETH_P_ALL
_OUTGOING = 4  # PACKET_OUTGOING
_SOL_PACKET, _AUXDATA = 263, 8
_AUX = struct.Struct("=III HHHH")  # status, lengths, offsets, VLAN tag and its type
_HAS_TAG = 0x10  # TP_STATUS_VLAN_VALID


class Far:
    """The far end of one of the relay's interfaces."""

    def __init__(self, interface: str) -> None:
        self._socket = socket.socket(
            socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(_ALL_PROTOCOLS)
        )
        self._socket.bind((f"{interface}-", _ALL_PROTOCOLS))
        self._socket.setsockopt(_SOL_PACKET, _AUXDATA, 1)
        self._socket.settimeout(2)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, data: bytes) -> None:
        self._socket.send(data)

    def receive(self) -> bytes:
        """The next frame that came in, with the outer VLAN tag that the kernel takes off."""
        while True:
            data, ancillary, _, (_, _, kind, _, _) = self._socket.recvmsg(2048, _AUX.size + 64)
            if kind == _OUTGOING:
                continue
            status, *_, tag, tag_kind = _AUX.unpack(ancillary[0][2])
            if not status & _HAS_TAG:
                return data
            return data[:12] + struct.pack("!HH", tag_kind, tag) + data[12:]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def ends(relay: Rig) -> Iterator[tuple[Far, Far]]:
    """Client side and transceiver side. A veth delivers redirected frames only to an end that has
    GRO on, or an XDP program."""
    if not shutil.which("ethtool"):
        pytest.skip("needs ethtool")
    with ExitStack() as stack:
        made = []
        for interface in (OUTER, INNER_SIDE):
            command = ["ethtool", "-K", f"{interface}-", "gro", "on"]
            subprocess.run(command, check=True, capture_output=True)
            made.append(Far(interface))
            stack.callback(made[-1].close)
        yield made[0], made[1]


@pytest.mark.parametrize(
    ("client", "vip", "local", "endpoint", "ours"),
    [
        pytest.param(CLIENT, 1, VIP, ENDPOINT, INNER, id="v4"),
        pytest.param(CLIENT_V6, 3, VIP_V6, ENDPOINT_V6, INNER_V6, id="v6"),
    ],
)
@pytest.mark.parametrize("tags", [(), (5,)], ids=["plain", "tagged"])
def test_a_datagram_goes_in_and_its_answer_comes_out(
    relay: Rig,
    ends: tuple[Far, Far],
    client: Address,
    vip: int,
    local: Address,
    endpoint: Address,
    ours: str,
    tags: tuple[int, ...],
) -> None:
    client_side, transceiver = ends
    own = token(endpoint)
    nexthop_out = TAGGED if tags else TO_CLIENT
    prefix = own[:8].encode()
    key = relay.install(client, vip, endpoint=endpoint, token=prefix, nexthop_out=nexthop_out)
    client_side.send(frame(client, local, request(own), tags=tags))
    inner = take_apart(transceiver.receive())
    assert (inner.source, inner.destination) == ((ours, SPORT), endpoint)
    assert inner.payload == spp_header(client, local) + request(own)

    transceiver.send(frame(endpoint, (ours, SPORT), spp_header(client, local) + DTLS))
    outer = take_apart(client_side.receive())
    assert (outer.source, outer.destination, outer.payload) == (local, client, DTLS)
    assert outer.tags == tags
    assert (relay.flow(key).packets_up, relay.flow(key).packets_down) == (1, 1)
