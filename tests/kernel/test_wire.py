"""Real frames through real interfaces: what is redirected comes out at the far end."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.kernel.packets import DTLS, frame, spp_header, stun, take_apart
from tests.kernel.rig import (
    CLIENT,
    ENDPOINT,
    INNER,
    INNER_SIDE,
    OUTER,
    SPORT,
    VIP,
    Rig,
)

_ALL_PROTOCOLS = 3  # ETH_P_ALL
_OUTGOING = 4  # PACKET_OUTGOING


class Far:
    """The far end of one of the relay's interfaces."""

    def __init__(self, interface: str) -> None:
        self._socket = socket.socket(
            socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(_ALL_PROTOCOLS)
        )
        self._socket.bind((f"{interface}-", _ALL_PROTOCOLS))
        self._socket.settimeout(2)

    def send(self, data: bytes) -> None:
        self._socket.send(data)

    def receive(self) -> bytes:
        while True:
            data, (_, _, kind, _, _) = self._socket.recvfrom(2048)
            if kind != _OUTGOING:
                return data

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


def test_a_datagram_goes_in_and_its_answer_comes_out(relay: Rig, ends: tuple[Far, Far]) -> None:
    client, transceiver = ends
    key = relay.install()
    client.send(frame(CLIENT, VIP, stun()))
    inner = take_apart(transceiver.receive())
    assert (inner.source, inner.destination) == ((INNER, SPORT), ENDPOINT)
    assert inner.payload == spp_header(CLIENT, VIP) + stun()

    transceiver.send(frame(ENDPOINT, (INNER, SPORT), spp_header(CLIENT, VIP) + DTLS))
    outer = take_apart(client.receive())
    assert (outer.source, outer.destination, outer.payload) == (VIP, CLIENT, DTLS)
    assert (relay.flow(key).packets_up, relay.flow(key).packets_down) == (1, 1)
